"""The other authors' neurons in a comparison: what may be chosen, the budget, a small run and its report."""

import itertools

import numpy as np
import pytest
from compare_cases import small_plan

from dendritree import create_model
from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import FAMILIES, ComparisonPlan, compare, summarize, write_comparison
from dendritree_lab.studies.fair.families import FOR_IMAGES, ON_IMAGES, OURS

RIVALS = [family for family in FAMILIES if family not in (*OURS, *FOR_IMAGES)]


def draw(family, task, budget, seed):
    return FAMILIES[family].configure(np.random.default_rng(seed), task, budget)


@pytest.mark.parametrize(
    ("family", "dataset", "budget"),
    [
        *itertools.product(FOR_IMAGES, ["cifar10"], [18_000]),
        *itertools.product(FOR_IMAGES, ["digits"], [1000]),
        *itertools.product(RIVALS, ["mnist", "digits"], [4000]),
        *itertools.product(RIVALS, ["adult", "california-housing"], [2000]),
    ],
)
def test_a_choice_fills_its_budget_and_one_neuron_more_would_not_fit(family, dataset, budget):
    for seed in range(2):
        configuration = draw(family, Task.parse(dataset), budget, seed)
        hidden = configuration.arguments["hidden"]
        sizes = [
            parameters_of(create_model(configuration.network, **configuration.arguments | {"hidden": wide}))
            for wide in (hidden, [width + 1 for width in hidden])
        ]
        assert sizes[0] <= budget < sizes[1]


def test_nobody_gets_them_unasked_and_everybody_who_asks():
    assert {cell.family for cell in ComparisonPlan.make(["digits"]).cells} == set(ON_IMAGES)
    assert {cell.family for cell in ComparisonPlan.make(["adult"]).cells} == set(OURS)
    plan = ComparisonPlan.make(["mnist"], families=list(RIVALS))
    assert {cell.budget for cell in plan.cells} == {4000, 9000, 18000, 36000}  # no larger MLPs
    assert [cell.family for cell in plan.cells][: len(RIVALS)] == list(RIVALS)
    with pytest.raises(OptionError, match=r"family must be one of .*dann.*: got 'dan'"):
        ComparisonPlan.make(["digits"], families=["dan"])


def test_a_small_run_of_all_of_them_and_its_report(tmp_path):
    plan = small_plan(families=[*RIVALS, "dense"], budgets=[700, 1400], trials=2)
    assert compare(tmp_path / "run", plan, workers=Workers("here")) is True
    assert compare(tmp_path / "run", plan, workers=Workers("here")) is True  # nothing left, the same configurations
    with RunStore.open_for_reading(tmp_path / "run") as store:
        found = summarize(store.trials())
    assert {result.cell.family for result in found.cells} == {*RIVALS, "dense"}
    assert all(result.multiply_adds for result in found.cells)
    assert {each.cell.family for each in found.efficiencies} == set(RIVALS)
    write_comparison(tmp_path / "run")
    text = (tmp_path / "run" / "comparison.md").read_text(encoding="utf-8")
    assert all(name in text for name in ("k-trees", "DENN", "DNM", "DMNN", "dANN"))
