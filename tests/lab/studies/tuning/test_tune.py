"""The search: within the budget, on validation alone, the same every time, and the same after a stop."""

import multiprocessing
import os
import signal

import optuna
import pytest
import torch
from effort import thorough
from filelock import FileLock

import dendritree
from dendritree.errors import DendritreeError, OptionError
from dendritree.training import evaluate
from dendritree.training.examples import Examples
from dendritree_lab.data.split import DataSplit
from dendritree_lab.studies.engine import configuration
from dendritree_lab.studies.tuning import tune

TRIALS = thorough(5, 7)
OPTIONS = {"budget": 300, "trials": TRIALS, "steps": 1}


def made_up(classes=3, inputs=6, seed=0, test_seed=1):
    """Examples whose class is the largest of the first inputs, or whose quantity is their sum; the test part apart."""

    def part(count, of):
        random = torch.Generator().manual_seed(of)
        x = torch.randn(count, inputs, generator=random)
        return Examples(x, x[:, :classes].argmax(1) if classes else x[:, :3].sum(1))

    return DataSplit(part(120, seed), part(60, seed + 100), part(60, test_seed + 200))


def tried(result):
    """Everything about the trials but the time they took."""
    return [(dict(t.chosen), t.whole, t.score, t.parameters, t.epochs) for t in result.trials]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search in a folder, in one go."""
    folder = tmp_path_factory.mktemp("whole")
    return tune(made_up(), out=folder / "out", **OPTIONS), folder / "out"


def test_a_search_keeps_to_the_budget_and_tries_the_preset_first(whole):
    result, _ = whole
    assert len(result.trials) == TRIALS
    assert all(trial.parameters is None or trial.parameters <= 300 for trial in result.trials)
    assert result.preset is result.trials[0]
    assert result.best.score == max(trial.score for trial in result.trials if trial.whole)
    assert result.parameters <= 300


def test_the_model_in_the_folder_is_the_one_that_was_judged(whole):
    result, folder = whole
    model, split = dendritree.load(folder / "model"), made_up()
    assert evaluate(model, split.test)[1] == result.test_score
    assert evaluate(model, split.val)[1] == result.val_score
    assert {path.name for path in folder.iterdir()} - {"study.lock"} == {"inputs.json", "model", "study.db"}


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
        self.left, self.fit, self.stop = at, configuration.fit, stop

    def __call__(self, model, split, config, callbacks):
        self.left -= 1

        def stop(run):
            if not self.left and len(run.history.epochs) == 2:
                self.stop()

        return self.fit(model, split, config, callbacks=[*callbacks, stop])


def test_a_search_that_was_stopped_goes_on_and_ends_the_same(whole, tmp_path, monkeypatch):
    for at in (1, 3, TRIALS - 2):  # the first trial, one in between, and then the training of the best
        with monkeypatch.context() as patch:
            patch.setattr(configuration, "fit", Stop(at))
            with pytest.raises(KeyboardInterrupt):
                tune(made_up(), out=tmp_path / "out", **OPTIONS)
        assert not (tmp_path / "out" / "model").exists()
    result = tune(made_up(), out=tmp_path / "out", **OPTIONS)
    assert tried(result) == tried(whole[0])
    assert (result.test_score, result.test_looks) == (whole[0].test_score, 1)


def kill_in_training(at, out):
    """A search in a process that is killed in the middle of its n-th training."""
    configuration.fit = Stop(at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    tune(made_up(), out=out, **OPTIONS)


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_and_ends_the_same(whole, tmp_path):
    for at in (1, 3):
        process = multiprocessing.get_context("spawn").Process(target=kill_in_training, args=(at, tmp_path / "out"))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    result = tune(made_up(), out=tmp_path / "out", **OPTIONS)
    assert tried(result) == tried(whole[0])
    assert (result.test_score, result.test_looks) == (whole[0].test_score, 1)


def test_more_trials_go_on_from_those_that_are_there_and_say_how_often_test_was_seen(whole, tmp_path):
    few = tune(made_up(), out=tmp_path, **OPTIONS | {"trials": 2})
    seen = []
    more = tune(made_up(), out=tmp_path, observer=lambda *told: seen.append(told), **OPTIONS)
    assert tried(more)[:2] == tried(few)
    assert tried(more) == tried(whole[0])
    notes = [told for told in seen if len(told) == 4]
    assert [told[:3] for told in notes] == [("trials", number + 1, TRIALS) for number in range(2, TRIALS)]
    assert seen[0] == ("trials", 2, TRIALS)
    assert more.test_looks == 1 + (more.best.number != few.best.number)


def test_a_quantity_is_tuned_for_little_error_and_two_classes_with_one_output():
    result = tune(made_up(classes=0), **OPTIONS)
    assert result.metric == "rmse"
    assert result.best.score == min(trial.score for trial in result.trials if trial.whole)
    assert result.model(torch.zeros(2, 6)).shape == (2, 1)
    assert tune(made_up(classes=2), **OPTIONS | {"trials": 1}).model(torch.zeros(2, 6)).shape == (2, 1)


def with_y(y):
    part = Examples(torch.randn(len(y), 4), y)
    return DataSplit(part, part, part)


BAD = {
    "budget too small": (made_up(), {"budget": 20}, "room for two neurons"),
    "another image": (made_up(), {"image_shape": (1, 2, 2)}, "image_shape"),
    "two quantities": (with_y(torch.rand(9, 2)), {}, "one number for each example"),
    "one class": (with_y(torch.zeros(9, dtype=torch.long)), {}, "two or more"),
    "a password": (made_up(), {"storage": "nonsense://me:secret@host/db"}, r"nonsense://\.\.\.@host/db"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_rejected_before_anything_is_written(case, tmp_path):
    split, options, message = BAD[case]
    with pytest.raises(DendritreeError, match=message) as caught:
        tune(split, **OPTIONS | options, out=None if "storage" in options else tmp_path / "out")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 400}, "budget changed from 300 to 400"),
        ({"seed": 3}, "seed changed from 0 to 3"),
        ({"data": made_up(seed=5)}, "data changed"),
    ],
)
def test_a_study_is_not_mixed_with_another(whole, change, message):
    with pytest.raises(OptionError, match=message):
        tune(**{"data": made_up(), **OPTIONS, "out": whole[1], **change})


def test_one_process_at_a_time_searches_in_a_folder(tmp_path):
    with FileLock(tmp_path / "study.lock"), pytest.raises(DendritreeError, match="another process"):
        tune(made_up(), out=tmp_path, **OPTIONS)


def test_a_study_of_others_and_a_damaged_one_are_rejected(whole, tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/theirs.db")
    study = optuna.create_study(storage=storage, study_name="theirs")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    storage.remove_session()
    storage.engine.dispose()
    with pytest.raises(OptionError, match="'theirs'"):
        tune(made_up(), storage=f"sqlite:///{tmp_path}/theirs.db", name="theirs", **OPTIONS)
    (tmp_path / "study.db").write_bytes((whole[1] / "study.db").read_bytes()[:5000])
    with pytest.raises(DendritreeError, match="database of the study"):
        tune(made_up(), **OPTIONS, out=tmp_path)
