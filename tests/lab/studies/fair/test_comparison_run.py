"""Complete small comparisons: what is chosen, evaluated and kept; stopped anywhere, they end as if never stopped."""

import collections
import dataclasses
import math
import types

import pytest
import torch
from compare_cases import parameters_by_hand, small_plan, trials_in

from dendritree import FitConfig, create_model, fit
from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree.training.examples import Examples
from dendritree.training.rewiring import Rewiring
from dendritree_lab.data import load_dataset
from dendritree_lab.studies.engine import phases
from dendritree_lab.studies.engine import task as tasks
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.engine.task import BATCH_SIZE, Task, epochs_for
from dendritree_lab.studies.fair import comparison_plan as plan
from dendritree_lab.studies.fair import comparison_trials as trials
from dendritree_lab.studies.fair.comparison import compare
from dendritree_lab.studies.fair.comparison_trials import choice_of
from dendritree_lab.studies.fair.families import FAMILIES, OURS

TRIALS = 4 * (3 + 2)
"""Trials of the small plan: four cells, a search of three and two evaluated models each."""


def here():
    return Workers("here")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a comparison that ran in one go, in this process."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert compare(folder, small_plan(), workers=here()) is True
    return folder


@pytest.fixture(scope="module")
def expected(whole):
    return trials_in(whole)


@pytest.mark.parametrize("family", ["tree", "linear"])
def test_choices_of_two_versions_are_not_mixed(whole, expected, family, monkeypatch):
    def draw(generator, task):
        return FAMILIES[family].draw(generator, task) | {"dropout": 0.25}

    changed = dataclasses.replace(FAMILIES[family], draw=draw)
    monkeypatch.setattr(plan, "FAMILIES", {**FAMILIES, family: changed})
    plan.draw_choice.cache_clear()
    try:
        with pytest.raises(FormatError, match=rf"of {family} on digits:128 differs .* in dropout: 0\.[01] -> 0\.25$"):
            compare(whole, small_plan(seeds=3), workers=here())
    finally:
        plan.draw_choice.cache_clear()
    assert trials_in(whole) == expected


# ----------------------------------------------------------------------------------------------- what a run consists of


def test_every_family_is_searched_and_judged_as_often(expected):
    found = collections.Counter((trial.key["phase"], trial.key["family"]) for trial in expected)
    assert found == {("search", family): 3 for family in OURS} | {("test", family): 2 for family in OURS}


def test_every_family_is_trained_alike(expected):
    steps = {"search": 1, "test": 8}
    for record in expected:
        epochs = epochs_for(128, steps[record.key["phase"]])
        assert {len(curve) for curve in record.curves.values()} == {epochs}
        assert record.key["task"] == "digits:128"


def test_models_are_within_their_budget_and_counted_truly(expected):
    for record in expected:
        assert record.parameters == parameters_by_hand(choice_of(record))
        assert record.parameters <= record.key["budget"] or record.key["family"] == "linear"


def test_the_test_set_is_for_judged_models_alone(expected):
    for record in expected:
        if record.key["phase"] == "search":
            assert record.scores == {}
        else:
            accuracy = record.scores["test_acc"]
            assert math.isfinite(record.scores["test_loss"])
            assert 0.0 <= accuracy <= 1.0
            assert accuracy * 300 == pytest.approx(round(accuracy * 300))  # of 300 test images


def test_the_judged_model_is_the_best_of_the_search_on_validation(expected):
    for family in OURS:
        mine = [record for record in expected if record.key["family"] == family]
        searched = [record for record in mine if record.key["phase"] == "search"]
        best = max(
            searched,
            key=lambda r: (r.curves["val_acc"][r.curves["val_loss"].index(min(r.curves["val_loss"]))], -r.key["trial"]),
        )
        for record in mine:
            if record.key["phase"] == "test":
                assert record.config == best.config
                assert record.seed not in {each.seed for each in searched}


def test_a_record_is_what_anybody_gets_who_trains_that_model(expected):
    """From its seed and config, with the training loop as it is; scores of the best epoch's weights, counted here."""
    record = next(r for r in expected if (r.key["phase"], r.key["family"]) == ("test", "tree"))
    choice = choice_of(record)
    moving = [Rewiring(choice.rewired, where="window", seed=record.seed)] if choice.rewired else []
    split = Task.parse("digits:128").load()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(record.seed)
        model = create_model(choice.network, **choice.arguments)
        rule = {"schedule": "one-cycle", "optimizer": "adamw", "batch_size": BATCH_SIZE, "seed": record.seed}
        rates = {"lr": choice.lr, "weight_decay": choice.weight_decay}
        config = FitConfig(epochs=len(record.curves["val_loss"]), **rule, **rates)
        history = fit(model, split, config, callbacks=moving)
    finally:
        torch.set_num_threads(threads)
    assert {name: history.columns()[name] for name in record.curves} == record.curves
    right = model.eval()(split.test.x).argmax(1) == split.test.y
    assert record.scores["test_acc"] == pytest.approx(right.double().mean().item())


# --------------------------------------------------------------------------------------------------- chosen blindfold


@pytest.fixture
def another_test_set(monkeypatch):
    """A function that puts other examples in the place of the digits' test set, wherever tasks load them."""

    def put(change):
        def changed(name, **options):
            split = load_dataset(name, **options)
            return dataclasses.replace(split, test=change(split.test))

        monkeypatch.setattr(tasks, "load_dataset", changed)
        tasks._load.cache_clear()

    yield put
    tasks._load.cache_clear()


def without_scores(records):
    return [dataclasses.replace(record, scores={}) for record in records]


def test_wrong_test_labels_change_the_scores_and_nothing_else(expected, another_test_set, tmp_path):
    another_test_set(lambda test: Examples(test.x, (test.y + 1) % 10))
    compare(tmp_path / "run", small_plan(families=["sparse", "tree"]), workers=here())
    found, same = trials_in(tmp_path / "run"), [r for r in expected if r.key["family"] in ("sparse", "tree")]
    assert without_scores(found) == without_scores(same)
    pairs = [(mine.scores, theirs.scores) for mine, theirs in zip(found, same, strict=True) if theirs.scores]
    assert pairs
    assert all(mine["test_loss"] != theirs["test_loss"] for mine, theirs in pairs)  # accuracies may be equal by chance
    assert any(mine["test_acc"] != theirs["test_acc"] for mine, theirs in pairs)


def test_a_search_does_without_a_test_set_a_judged_model_looks_once(another_test_set, tmp_path, monkeypatch):
    looks = []

    def evaluate(model, examples, loss):
        looks.append(len(examples))
        return trials_evaluate(model, examples, loss)

    trials_evaluate = trials.evaluate
    monkeypatch.setattr(trials, "evaluate", evaluate)
    another_test_set(lambda test: Examples(test.x[:7] * math.nan, test.y[:7]))  # whoever used it would get NaN
    compare(tmp_path / "run", small_plan(families=["dense", "tree"]), workers=here())
    records = trials_in(tmp_path / "run")
    assert looks == [7] * sum(record.key["phase"] == "test" for record in records) == [7] * 4
    for record in records:
        assert all(math.isfinite(value) for curve in record.curves.values() for value in curve)
        assert math.isnan(record.scores.get("test_loss", math.nan))


# ------------------------------------------------------------------------------------------------ stopped and gone on


class StopAt:
    """An observer that presses Ctrl-C once so many trials are done."""

    def __init__(self, trials):
        self.left = trials

    def __call__(self, what, done, total, note=""):
        assert 0 <= done <= total
        self.left -= done > 0
        if not self.left and done:
            raise KeyboardInterrupt


@pytest.mark.parametrize("done", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_interrupted_and_gone_on_is_as_in_one_go(done, expected, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        compare(tmp_path / "run", small_plan(), workers=here(), observer=StopAt(done))
    kept = trials_in(tmp_path / "run")
    assert len(kept) == done
    assert all(record in expected for record in kept)
    calls = []
    assert compare(tmp_path / "run", small_plan(), workers=here(), observer=lambda *call: calls.append(call)) is True
    assert trials_in(tmp_path / "run") == expected
    assert sum(count > 0 for _, count, *_ in calls) == TRIALS - done  # nothing is done twice


def test_the_order_of_cells_changes_nothing(expected, tmp_path):
    """Nor does the number of workers: see the test of the command."""
    plan = small_plan()
    assert compare(tmp_path / "run", dataclasses.replace(plan, cells=plan.cells[::-1]), workers=here()) is True
    assert trials_in(tmp_path / "run") == expected


def test_a_whole_run_has_nothing_left_to_do(whole, expected):
    calls = []
    assert compare(whole, small_plan(), workers=here(), observer=lambda *call: calls.append(call)) is True
    assert calls == []
    assert trials_in(whole) == expected


def test_cells_come_later_families_budgets_data_sets_and_seeds(expected, tmp_path):
    folder = tmp_path / "run"
    for families in (["sparse"], ["linear", "dense"], ["tree", "sparse"]):
        assert compare(folder, small_plan(families=families), workers=here())
    assert trials_in(folder) == expected
    assert compare(folder, small_plan("digits:64", budgets=[200, 300], families=["dense"], seeds=1), workers=here())
    assert compare(folder, small_plan(seeds=3, families=["linear", "dense"]), workers=here())
    grown = trials_in(folder)
    assert [record for record in grown if record.key["task"] == "digits:128" and record.key["trial"] < 3] != expected
    assert [
        r for r in grown if r.key["task"] == "digits:128" and (r.key["phase"], r.key["trial"]) != ("test", 2)
    ] == expected
    assert sum(record.key["task"] == "digits:64" for record in grown) == 2 * (3 + 1)
    assert len(grown) == TRIALS + 2 * (3 + 1) + 2


@pytest.mark.parametrize(
    ("options", "difference"),
    [({"trials": 4}, "trials: 3 -> 4"), ({"steps": 9}, "steps: 1 -> 9"), ({"test_steps": 9}, "test_steps: 8 -> 9")],
)
def test_another_rule_is_refused_with_the_difference_and_changes_nothing(options, difference, whole):
    before = (whole / STORE_FILE).read_bytes()
    with pytest.raises(
        FormatError, match=f"a run resumes with the settings it was started with: .* differs in {difference}"
    ):
        compare(whole, small_plan(**options), workers=here())
    assert (whole / STORE_FILE).read_bytes() == before


def test_the_folder_of_another_kind_of_run_is_refused(tmp_path):
    RunStore.create_or_open(tmp_path / "run", {"trials": 10}).close()
    with pytest.raises(FormatError, match="a run resumes with the settings it was started with"):
        compare(tmp_path / "run", small_plan(), workers=here())


# -------------------------------------------------------------------------------------------------------------- hours


@pytest.fixture
def hours_a_trial(monkeypatch):
    """An observer for which every trial takes an hour of the clock that `compare` reads."""
    clock = types.SimpleNamespace(now=1000.0)
    monkeypatch.setattr(phases, "time", types.SimpleNamespace(monotonic=lambda: clock.now))

    def observer(_what, done, _total, _note=""):
        clock.now += 3600.0 * (done > 0)

    return observer


@pytest.mark.parametrize(("hours", "done"), [(1e-9, 1), (0.5, 1), (2.5, 3), (3.5, 4), (4.5, 5), (99, 5)])
def test_nothing_is_begun_after_the_hours_are_over_and_it_goes_on_later(hours, done, hours_a_trial, expected, tmp_path):
    """A search of three trials, then two evaluated models: the time ends within either or between them."""
    plan, options = small_plan(families=["linear"]), {"workers": here(), "observer": hours_a_trial}
    finished = compare(tmp_path / "run", plan, hours=hours, **options)
    kept = trials_in(tmp_path / "run")
    assert (finished, len(kept)) == (done == 5, done)
    assert all(record in expected for record in kept)
    assert compare(tmp_path / "run", plan, hours=math.inf, **options) is True
    assert trials_in(tmp_path / "run") == [record for record in expected if record.key["family"] == "linear"]


@pytest.mark.parametrize("hours", [0, -1, 0.0, math.nan, -math.inf])
def test_hours_that_are_none_are_refused_before_a_folder_is_made(hours, tmp_path):
    with pytest.raises(OptionError, match=f"hours must be a positive number: got {hours!r}"):
        compare(tmp_path / "run", small_plan(), workers=here(), hours=hours)
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------- manners and refusals


def test_the_random_numbers_and_threads_of_the_caller_stay(tmp_path):
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    compare(tmp_path / "run", small_plan(families=["linear"]), workers=here())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (small_plan(budgets=[10], families=["dense"]), {}, "room for two neurons: 10 parameters do not"),
        (small_plan(budgets=[10], families=["linear", "tree"]), {}, "room for two neurons: 10 parameters do not"),
        (small_plan("digits:5000"), {}, "1 to the 1197 training examples: got 5000"),
        (small_plan("mnist"), {"data_dir": "no/such/folder"}, "data_dir must name a folder: got '.*no/such/folder'"),
    ],
    ids=["budget", "budget of the last", "examples", "data_dir"],
)
def test_what_cannot_be_done_is_refused_before_anything_is_trained_or_written(plan, options, message, tmp_path):
    with pytest.raises(DendritreeError, match=message):
        compare(tmp_path / "run", plan, workers=here(), **options)
    assert list(tmp_path.iterdir()) == []
