"""What a search draws: the widest models of a budget, true trees and honest controls, all with the same rates."""

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dendritree import DendriticLayer, create_model
from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree.wiring import Local
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair.comparison_plan import BUDGETS, ComparisonCell, draw_configuration
from dendritree_lab.studies.fair.families import FAMILIES, FOR_IMAGES, OURS

SIZED = ("tree", "sparse", "dense")


def choose(family, task, budget, seed=0):
    return FAMILIES[family].configure(np.random.default_rng(seed), task, budget)


@functools.cache
def draws(family, name="digits", budget=500, count=30):
    cell = ComparisonCell(Task.parse(name), budget, family)
    return [draw_configuration(cell, index) for index in range(count)]


def trees_of(model):
    """The forests of the hidden layers."""
    return [step.forest for step in model.hidden if isinstance(step, DendriticLayer)]


def depths(forest):
    """Edges from the farthest synapse of each neuron to its soma, walked edge by edge."""
    height = [0] * (forest.in_features + forest.nodes)
    for node in range(forest.nodes):
        below = forest.source[forest.offsets[node] : forest.offsets[node + 1]]
        height[forest.in_features + node] = 1 + max(height[source] for source in below)
    return {height[root + forest.in_features] for root in forest.roots}


# ---------------------------------------------------------------------------------------------------------- the budget


def test_the_budget_that_an_error_states_is_enough_for_every_draw():
    task = Task.parse("digits")
    with pytest.raises(OptionError, match="the least is") as error:
        choose("dense", task, 10)
    least = int(str(error.value).rpartition(" ")[2].replace(",", ""))
    for seed in range(16):
        configuration = choose("dense", task, least, seed)
        parameters = parameters_of(create_model(configuration.network, **configuration.arguments, device="meta"))
        assert parameters == least
    with pytest.raises(OptionError):
        choose("dense", task, least - 1)


def one_wider(hidden):
    """Hidden layers of one neuron more each."""
    return [width + 1 for width in hidden]


@pytest.mark.parametrize("family", SIZED)
@given(st.sampled_from(list(BUDGETS)), st.integers(3500, 9000), st.integers(0, 2**32))
@example("mnist-pairs", 3500, 0)
@example("california-housing", 3500, 0)
@settings(max_examples=5)
def test_a_drawn_model_fills_its_budget_and_no_more(family, name, budget, seed):
    configuration = choose(family, Task.parse(name), budget, seed)
    network, arguments = configuration.network, configuration.arguments
    model = create_model(network, **arguments, device="meta")
    wider = create_model(network, **arguments | {"hidden": one_wider(arguments["hidden"])}, device="meta")
    assert parameters_of(model) <= budget < parameters_of(wider)
    if family != "dense":
        for forest in trees_of(model):
            assert depths(forest) == ({1} if family == "sparse" else {2})


# ------------------------------------------------------------------------------------------------------ what is drawn


def test_rates_and_decays_do_not_hang_on_the_family():
    """The same random numbers give the same: they are drawn first, from the same ranges."""
    for seed in range(3):
        found = [choose(family, Task.parse("digits"), 600, seed) for family in OURS]
        assert len({(configuration.lr, configuration.weight_decay) for configuration in found}) == 1


def seen(configurations, key):
    return {repr(each.arguments[key]) for each in configurations}


def test_everything_that_may_be_chosen_is_tried():
    tree, sparse, dense, linear = (draws(family) for family in (*SIZED, "linear"))
    for configurations in (tree, sparse, dense, linear):
        assert len(seen(configurations, "dropout")) >= 2
        assert len({each.weight_decay for each in configurations}) >= 2
        assert len({each.rewired for each in configurations}) == (2 if configurations in (tree, sparse) else 1)
    for configurations in (tree, sparse, dense):
        assert len(seen(configurations, "norm")) == 2
    assert {len(configuration.arguments["hidden"]) for configuration in dense} == {1, 2}
    for configurations in (tree, sparse):
        assert {each.arguments["branching"][0] for each in configurations} == {9, 16, 25, 36, 49}
        wirings = [each.arguments["wiring"] for each in configurations]
        assert {(wiring.per, wiring.place) for wiring in wirings} >= {("dendrite", "free"), ("dendrite", "near")}
        assert len({wiring.window for wiring in wirings}) > 3
    assert {isinstance(configuration.arguments["branching"][-1], list) for configuration in tree} == {
        True,
        False,
    }  # bypass or not


@pytest.mark.parametrize("name", ["digits", "mnist-pairs"])
def test_trees_and_sparse_perceptrons_of_images_read_windows_that_hold_a_dendrite(name):
    task = Task.parse(name)
    for family in ("tree", "sparse"):
        for configuration in draws(family) if name == "digits" else draws(family, name, 3500, 6):
            wiring = configuration.arguments["wiring"]
            assert isinstance(wiring, Local)
            assert wiring.image_shape == task.image_shape
            assert wiring.seed is None  # drawn with the weights, from the trial's seed
            assert wiring.window <= min(task.image_shape[1:])
            assert wiring.window**2 >= configuration.arguments["branching"][0]


# ------------------------------------------------------------------------------- families that share weights in images


def test_the_control_of_tied_dendrites_differs_in_nothing_but_their_activation():
    task = Task.parse("cifar10")
    for seed in range(5):
        random = [np.random.default_rng(seed) for _ in range(2)]
        tied, linear = (FAMILIES[name].draw(each, task) for name, each in zip(FOR_IMAGES[:2], random, strict=True))
        assert linear == tied | {"linear_dendrites": True}
