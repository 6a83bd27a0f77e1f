"""The search: within the budget, on validation alone, the same every time, and the same after a stop."""

import contextlib
import dataclasses
import math
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3

import pytest
import torch
from dendritree.interrupts import interrupts_held
from effort import thorough
from tune_cases import made_up, tried

import dendritree
from dendritree.errors import DendritreeError, OptionError
from dendritree.files import present
from dendritree.training import evaluate
from dendritree.training.examples import Examples, Split
from dendritree_lab.studies.engine import configuration as choice
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.tuning import search, tune
from dendritree_lab.studies.tuning.space import Space
from dendritree_lab.studies.tuning.study import quiet

optuna = pytest.importorskip("optuna")
TRIALS = thorough(5, 7)
OPTIONS = {"budget": 300, "trials": TRIALS, "steps": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search in a folder, in one go."""
    folder = tmp_path_factory.mktemp("whole")
    return tune(made_up(), out=folder / "out", **OPTIONS), folder / "out"


def test_a_search_keeps_to_the_budget_and_tries_the_preset_first(whole):
    found, _ = whole
    assert len(found.trials) == TRIALS
    assert all(trial.parameters is None or trial.parameters <= 300 for trial in found.trials)
    assert found.preset is found.trials[0]
    assert found.best.score == max(trial.score for trial in found.trials if trial.whole)
    assert found.parameters <= 300


def test_the_model_in_the_folder_is_the_one_that_was_judged(whole):
    found, folder = whole
    model, split = dendritree.load(folder / "model"), made_up()
    assert evaluate(model, split.test)[1] == found.test_score
    assert evaluate(model, split.val)[1] == found.val_score
    assert {path.name for path in folder.iterdir()} == {"inputs.json", "model", "study.db"}


def test_the_search_depends_on_its_seed_alone_and_leaves_torchs_generator_as_it_was(whole):
    torch.manual_seed(123)
    state = torch.get_rng_state()
    again = tune(made_up(), **OPTIONS)
    assert torch.equal(torch.get_rng_state(), state)
    assert tried(again) == tried(whole[0])
    assert again.test_score == whole[0].test_score
    assert tried(tune(made_up(), seed=1, **OPTIONS | {"trials": 2})) != tried(again)[:2]


def test_test_examples_do_not_matter_before_the_end(whole):
    other = tune(made_up(test_seed=7), **OPTIONS)
    assert tried(other) == tried(whole[0])
    assert other.test_score != whole[0].test_score


def interrupt(*_):
    raise KeyboardInterrupt


class Stop:
    """`fit` that is interrupted, or stopped in another way, in the middle of its n-th training."""

    def __init__(self, at, stop=interrupt):
        self.left, self.fit, self.stop = at, choice.fit, stop

    def __call__(self, model, split, config, callbacks):
        self.left -= 1

        def stop(run):
            if not self.left and len(run.history.epochs) == 2:
                self.stop()

        return self.fit(model, split, config, callbacks=[*callbacks, stop])


def test_a_search_that_was_stopped_goes_on_and_ends_the_same(whole, tmp_path, monkeypatch):
    for at in (1, 3, TRIALS - 2):  # the first trial, one in between, and then the training of the best
        with monkeypatch.context() as patch:
            patch.setattr(choice, "fit", Stop(at))
            with pytest.raises(KeyboardInterrupt):
                tune(made_up(), out=tmp_path / "out", **OPTIONS)
        assert not (tmp_path / "out" / "model").exists()
    found = tune(made_up(), out=tmp_path / "out", **OPTIONS)
    assert tried(found) == tried(whole[0])
    assert (found.test_score, found.test_looks) == (whole[0].test_score, 1)


def kill_in_training(at, out):
    """A search in a process that is killed in the middle of its n-th training."""
    choice.fit = Stop(at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    tune(made_up(), out=out, **OPTIONS)


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_and_ends_the_same(whole, tmp_path):
    for at in (1, 3):
        process = multiprocessing.get_context("spawn").Process(target=kill_in_training, args=(at, tmp_path / "out"))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    found = tune(made_up(), out=tmp_path / "out", **OPTIONS)
    assert tried(found) == tried(whole[0])
    assert (found.test_score, found.test_looks) == (whole[0].test_score, 1)


@contextlib.contextmanager
def optunas_own(file, name):
    """A study as Optuna alone makes or opens it, closed in the end: Python 3.13 warns of a database that is not."""
    with quiet():
        storage = optuna.storages.RDBStorage(f"sqlite:///{file}")
        try:
            yield optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
        finally:
            storage.remove_session()
            storage.engine.dispose()


def test_trials_of_a_process_that_is_at_work_are_left_alone(tmp_path):
    """A search that shares the folder finds a trial that runs: of another process, or a rest of one that was killed."""
    tune(made_up(), out=tmp_path, **OPTIONS | {"trials": 1})

    def left_running():
        with optunas_own(tmp_path / "study.db", "tune") as study:
            return [trial.number for trial in study.get_trials() if trial.state.name == "RUNNING"]

    with optunas_own(tmp_path / "study.db", "tune") as study:
        number = study.ask().number
    with present(tmp_path, lambda: None):
        tune(made_up(), out=tmp_path, **OPTIONS | {"trials": 2})
        assert left_running() == [number]
    tune(made_up(), out=tmp_path, **OPTIONS | {"trials": 2})
    assert left_running() == []


def test_a_preset_that_was_stopped_before_its_values_were_known_is_tried_again(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Space, "suggest", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(made_up(), out=tmp_path, **OPTIONS)
    assert tried(tune(made_up(), out=tmp_path, **OPTIONS)) == tried(whole[0])


def test_more_trials_go_on_from_those_that_are_there_and_say_how_often_test_was_seen(whole, tmp_path):
    few = tune(made_up(), out=tmp_path, **OPTIONS | {"trials": 2})
    seen = []
    more = tune(made_up(), out=tmp_path, observer=lambda *told: seen.append(told), **OPTIONS)
    assert tried(more)[:2] == tried(few)
    assert tried(more) == tried(whole[0])
    notes = [told for told in seen if len(told) == 4]
    assert [told[:3] for told in notes] == [("trials", number + 1, TRIALS) for number in range(2, TRIALS)]
    assert all(
        re.match(r"accuracy 0\.\d{4}, \d+ parameters(, stopped early)?; best accuracy 0\.\d{4}$", told[3])
        for told in notes
    )
    assert seen[0] == ("trials", 2, TRIALS)
    assert more.test_looks == 1 + (more.best.number != few.best.number)


def test_the_first_result_is_told_before_the_first_trial_is_done_and_the_final_training_epoch_by_epoch():
    seen = []
    tune(made_up(), budget=300, trials=1, steps=8, observer=lambda *told: seen.append(told))
    trials = [told[1:] for told in seen if told[0] == "trials"]
    assert trials[0] == (0, 1)
    assert re.fullmatch(r"first trial, epoch 1 of \d+: accuracy [01]\.\d{4}", trials[1][2])
    assert trials[-1][:2] == (1, 1)
    final = [told[1:] for told in seen if told[0] == "final training"]
    assert final == [(done, final[-1][0]) for done in range(len(final))]


def test_bad_trials_are_stopped_early_among_those_of_their_share():
    found = tune(made_up(), budget=300, trials=25, steps=8)
    stopped = [trial for trial in found.trials if not trial.whole and trial.score is not None]
    assert stopped
    (epochs,) = {trial.epochs for trial in found.whole}
    for trial in stopped:
        assert 2 <= trial.epochs < epochs
        share = trial.chosen["share"]
        before = [t for t in found.whole if t.number < trial.number and t.chosen["share"] == share]
        assert len(before) >= search.FEWEST_RIVALS
    assert math.isclose(sum(found.importance.values()), 1, abs_tol=1e-6)
    assert set(found.importance) == set(found.best.chosen)
    sizes = [trial.parameters for trial in found.pareto]
    scores = [trial.score for trial in found.pareto]
    assert sizes == sorted(sizes)
    assert scores == sorted(scores)
    assert found.best.score == scores[-1]


def test_a_quantity_is_tuned_for_little_error_and_two_classes_with_one_output():
    found = tune(made_up(classes=0), **OPTIONS)
    assert found.metric == "rmse"
    assert found.best.score == min(trial.score for trial in found.trials if trial.whole)
    assert found.model(torch.zeros(2, 6)).shape == (2, 1)
    assert tune(made_up(classes=2), **OPTIONS | {"trials": 1}).model(torch.zeros(2, 6)).shape == (2, 1)


def test_the_verdict_says_what_was_found(whole):
    found, _ = whole
    text = " ".join(found.verdict)
    assert f"accuracy {found.best.score:.4f} on the validation examples" in text
    assert f"accuracy {found.test_score:.4f} on the test examples, which were not used before" in text
    assert "the best of our comparison" in text
    looked_twice = dataclasses.replace(found, test_looks=2)
    assert "has now used 2 times" in " ".join(looked_twice.verdict)


def with_y(y):
    part = Examples(torch.randn(len(y), 4), y)
    return Split(part, part, part)


BAD = {
    "budget too small": (made_up(), {"budget": 20}, "budget must leave room for two neurons: 20 parameters do not"),
    "budget of words": (made_up(), {"budget": "much"}, "budget must be an integer number of parameters.*'much'"),
    "no trials": (made_up(), {"trials": 0}, "trials must be an integer of at least 1: got 0"),
    "no steps": (made_up(), {"steps": 0}, "steps must be an integer of at least 1: got 0"),
    "a negative seed": (made_up(), {"seed": -1}, "seed must be an integer of at least 0: got -1"),
    "another image": (made_up(), {"image_shape": (1, 2, 2)}, r"image_shape must have 6 pixels.*\(1, 2, 2\)"),
    "no image": (made_up(), {"image_shape": (1, 0, 6)}, "image_shape"),
    "images as images": (Split(*[Examples(torch.rand(4, 2, 2), torch.zeros(4))] * 3), {}, "must be rows of floats"),
    "two quantities": (with_y(torch.rand(9, 2)), {}, "one number for each example"),
    "one class": (with_y(torch.zeros(9, dtype=torch.long)), {}, "numbered from 0, two or more"),
    "no test examples": (
        Split(*[Examples(torch.rand(n, 4), torch.rand(n)) for n in (5, 5, 0)]),
        {},
        r"training, validation and test examples: got \[5, 5, 0\]",
    ),
    "no database": (made_up(), {"storage": "nonsense://nowhere"}, "a database that Optuna can open: got 'nonsense://"),
    "a password": (made_up(), {"storage": "nonsense://me:secret@host/db"}, r"got 'nonsense://\.\.\.@host/db'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_anything_is_written(case, tmp_path):
    split, options, message = BAD[case]
    with pytest.raises(OptionError, match=message) as caught:
        tune(split, **OPTIONS | options, out=None if "storage" in options else tmp_path / "out")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 400}, "resumes with the budget it was started with, 300: got 400"),
        ({"seed": 3}, "resumes with the seed it was started with, 0: got 3"),
        ({"steps": 2}, "resumes with the steps it was started with, 1: got 2"),
        ({"data": made_up(seed=5)}, "resumes with the data it was started with"),
    ],
)
def test_a_study_is_not_mixed_with_another(whole, change, message):
    with pytest.raises(OptionError, match=message):
        tune(**{"data": made_up(), **OPTIONS, "out": whole[1], **change})


def test_a_study_of_others_is_left_alone(tmp_path):
    with optunas_own(tmp_path / "theirs.db", "theirs") as study:
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(OptionError, match="must have been made by dendritree to be resumed: 'theirs' was not"):
        tune(made_up(), storage=f"sqlite:///{tmp_path}/theirs.db", name="theirs", **OPTIONS)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM study_directions", "storage must be a database that Optuna can open"),
        ("UPDATE study_directions SET direction = 'MINIMIZE'", "must have been made by dendritree to be resumed"),
        ("UPDATE study_user_attributes SET value_json = '[]'", "must have been made by dendritree to be resumed"),
        ("UPDATE trial_values SET value = NULL", "storage must be a database that Optuna can open"),
        ("UPDATE trial_user_attributes SET value_json = 'null'", "wrote them: number 0 of 'tune' is not"),
        ("DELETE FROM trial_params WHERE param_name = 'share'", "must be as a search wrote them: number 0"),
        ("ALTER TABLE trials RENAME COLUMN datetime_start TO begun", "storage must be a database that Optuna can open"),
    ],
)
def test_a_damaged_study_is_rejected(whole, sql, message, tmp_path):
    shutil.copy(whole[1] / "study.db", tmp_path / "study.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as connection, connection:
        connection.execute(sql)
    with pytest.raises(DendritreeError, match=message):
        tune(made_up(), **OPTIONS | {"trials": TRIALS + 1}, out=tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(DendritreeError, match="out must be a folder that can be written"):
        tune(made_up(), out=tmp_path / "out", **OPTIONS)


def test_a_diverged_training_is_no_result():
    assert math.isnan(Task(4, 3).score(math.nan, 0.3))


def test_ctrl_c_waits_while_a_trial_is_begun():
    done = []

    def begin():
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            done.append("the block ends")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["the block ends"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
