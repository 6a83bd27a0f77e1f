"""The other authors' neurons in a comparison: what may be chosen, the budget, a small run and its report."""

import numpy as np
import pytest
from compare_cases import small_plan
from effort import thorough

from dendritree import create_model
from dendritree.errors import OptionError
from dendritree.neurons.families import neuron_names
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import FAMILIES, FOR_IMAGES, OURS, ComparisonPlan, compare, summarize, write_comparison

RIVALS = [family for family in FAMILIES if family not in (*OURS, *FOR_IMAGES)]


def parameters_by_hand(choice, width):
    """Parameters of a network of `width` hidden neurons, written from what each family stores."""
    config, options = choice.arguments, choice.arguments["options"]
    inputs, outputs = config["in_features"], config["out_features"]
    if config["neuron"] == "ktree":
        each, level = 0, inputs
        while level > 1:
            nodes = -(-level // options["branching"])
            each, level = each + level + nodes, nodes
    elif config["neuron"] == "denn":
        each = inputs + options["branches"]
    elif config["neuron"] == "dann":
        each = (min(16, inputs) + 1) * options["dendrites"] + options["dendrites"] + 1
    else:
        each = 2 * inputs * options["dendrites"]
    return width * (each + (2 if config["norm"] else 0)) + outputs * (width + 1)


def draw(family, task, budget, seed):
    return FAMILIES[family].choose(np.random.default_rng(seed), task, budget)


def test_every_rival_is_a_neuron_with_a_name_of_its_own():
    assert set(RIVALS) == set(neuron_names())
    assert len({family.name for family in FAMILIES.values()}) == len(FAMILIES)


@pytest.mark.parametrize("family", RIVALS)
@pytest.mark.parametrize(
    ("dataset", "budget"), [("mnist", 4000), ("digits", 4000), ("adult", 2000), ("california-housing", 1000)]
)
def test_a_choice_fills_its_budget_and_one_neuron_more_would_not_fit(family, dataset, budget):
    for seed in range(4):
        choice = draw(family, Task.parse(dataset), budget, seed)
        (width,) = choice.arguments["hidden"]
        model = create_model(choice.network, **choice.arguments)
        real = sum(p.numel() for p in model.parameters())
        assert real == parameters_by_hand(choice, width) <= budget < parameters_by_hand(choice, width + 1)


def test_first_boxes_lie_where_the_data_does():
    task = Task.parse("digits")
    x, (low, high) = task.load().train.x, draw("dmnn", task, 4000, 0).arguments["options"]["input_range"]
    assert (x.min().item(), x.max().item()) == pytest.approx((low, high), abs=1e-3)


@pytest.mark.parametrize("family", RIVALS)
def test_choices_differ_in_what_the_family_is_known_for(family):
    options = [draw(family, Task.parse("digits"), 4000, seed).arguments["options"] for seed in range(thorough(15, 40))]
    for name in options[0]:
        if name not in ("image_shape", "input_range"):  # these are the task's
            assert len({repr(each[name]) for each in options}) > 1, name


def test_nobody_gets_them_unasked_and_everybody_who_asks():
    assert {cell.family for cell in ComparisonPlan.make(["digits"]).cells} == set(OURS)
    plan = ComparisonPlan.make(["mnist"], families=list(RIVALS))
    assert {cell.budget for cell in plan.cells} == {4000, 9000, 18000, 36000}  # no larger MLPs
    assert [cell.family for cell in plan.cells][: len(RIVALS)] == list(RIVALS)
    with pytest.raises(OptionError, match=r"family must be one of .*dann.*: got 'dan'"):
        ComparisonPlan.make(["digits"], families=["dan"])


def test_a_small_run_of_all_of_them_and_its_report(tmp_path):
    plan = small_plan(families=[*RIVALS, "dense"], budgets=[700, 1400], trials=2)
    assert compare(tmp_path / "run", plan, workers=Workers("here")) is True
    assert compare(tmp_path / "run", plan, workers=Workers("here")) is True  # nothing left, the same choices
    with RunStore.open_for_reading(tmp_path / "run") as store:
        found = summarize(store.trials())
    assert {result.cell.family for result in found.cells} == {*RIVALS, "dense"}
    assert all(result.multiply_adds for result in found.cells)
    assert {each.cell.family for each in found.efficiencies} == set(RIVALS)
    write_comparison(tmp_path / "run")
    text = (tmp_path / "run" / "comparison.md").read_text(encoding="utf-8")
    assert all(name in text for name in ("k-trees", "DENN", "DNM", "DMNN", "dANN"))
