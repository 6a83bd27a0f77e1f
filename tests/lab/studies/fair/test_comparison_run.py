"""Complete small comparisons: what is chosen, evaluated and kept; stopped anywhere, they end as if never stopped."""

import dataclasses
import math

import pytest
import torch
from compare_cases import small_plan, trials_in

from dendritree import FitConfig, create_model, fit
from dendritree.training.examples import Examples
from dendritree.training.rewiring import Rewiring
from dendritree_lab.data import load_dataset
from dendritree_lab.studies.engine import task as tasks
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.task import Task, batch_size_for
from dendritree_lab.studies.fair import comparison as trials
from dendritree_lab.studies.fair.comparison import compare
from dendritree_lab.studies.fair.comparison_plan import configuration_of
from dendritree_lab.studies.fair.families import OURS

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


# ----------------------------------------------------------------------------------------------- what a run consists of


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
    configuration = configuration_of(record)
    moving = [Rewiring(configuration.rewired, where="window", seed=record.seed)] if configuration.rewired else []
    split = Task.parse("digits:128").load()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(record.seed)
        model = create_model(configuration.network, **configuration.arguments)
        rule = {
            "schedule": "one-cycle",
            "optimizer": "adamw",
            "batch_size": batch_size_for(len(split.train)),
            "seed": record.seed,
        }
        rates = {"lr": configuration.lr, "weight_decay": configuration.weight_decay}
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


def test_cells_and_seeds_can_be_added_later(expected, tmp_path):
    folder = tmp_path / "run"
    for families in (["sparse"], ["linear", "dense"], ["tree", "sparse"]):
        assert compare(folder, small_plan(families=families), workers=here())
    assert trials_in(folder) == expected
    assert compare(folder, small_plan("digits:64", families=["dense"], seeds=1), workers=here())
    assert compare(folder, small_plan(seeds=3, families=["linear", "dense"]), workers=here())
    assert len(trials_in(folder)) == TRIALS + (3 + 1) + 2


# --------------------------------------------------------------------------------------------- manners and refusals


def test_the_random_numbers_and_threads_of_the_caller_stay(tmp_path):
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    compare(tmp_path / "run", small_plan(families=["linear"]), workers=here())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
