"""What a search draws: the widest models of a budget, true trees and honest controls, all with the same rates."""

import functools
import itertools
import math
import re

import numpy as np
import pytest
from compare_cases import made_trial, one_wider, parameters_by_hand
from effort import thorough
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dendritree import DendriticLayer, create_model
from dendritree.errors import OptionError
from dendritree.models.sizing import fill_budget
from dendritree.tree import Forest
from dendritree.wiring import Local, Random
from dendritree_lab.studies.engine.configuration import Configuration
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import ComparisonPlan
from dendritree_lab.studies.fair.comparison_plan import BUDGETS, draw_choice
from dendritree_lab.studies.fair.comparison_trials import Cell, FairJob, choice_of
from dendritree_lab.studies.fair.families import FAMILIES, FOR_IMAGES, LEARNING_RATES, OURS

SIZED = ("tree", "sparse", "dense")


def choose(family, task, budget, seed=0):
    return FAMILIES[family].choose(np.random.default_rng(seed), task, budget)


@functools.cache
def draws(family, name="digits", budget=500, count=30):
    cell = Cell(Task.parse(name), budget, family)
    return [draw_choice(cell, index) for index in range(count)]


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


@pytest.mark.parametrize("family", SIZED)
@given(st.sampled_from(list(BUDGETS)), st.integers(3500, 9000), st.integers(0, 2**32))
@example("mnist-pairs", 3500, 0)
@example("california-housing", 3500, 0)
@settings(max_examples=5)
def test_a_drawn_model_fills_its_budget_and_no_more(family, name, budget, seed):
    task = Task.parse(name)
    choice = choose(family, task, budget, seed)
    model = create_model(choice.network, **choice.arguments, device="meta")
    size = sum(parameter.numel() for parameter in model.parameters())
    assert size == parameters_by_hand(choice) <= budget
    assert parameters_by_hand(choice, one_wider(choice.arguments["hidden"])) > budget
    if family != "dense":
        for forest in trees_of(model):
            assert depths(forest) == ({1} if family == "sparse" else {2})


@pytest.mark.parametrize("family", SIZED)
@given(st.integers(300, 3500), st.integers(0, 2**32))
@settings(max_examples=5)
def test_small_budgets_of_small_images_are_filled_too(family, budget, seed):
    choice = choose(family, Task.parse("digits"), budget, seed)
    assert parameters_by_hand(choice) <= budget < parameters_by_hand(choice, one_wider(choice.arguments["hidden"]))


def test_perceptrons_have_one_size_whatever_the_budget():
    for budget in (0, 5, 10**6):
        choice = choose("linear", Task.parse("mnist"), budget)
        assert parameters_by_hand(choice) == 785 * 10
        model = create_model(choice.network, **choice.arguments)
        assert sum(parameter.numel() for parameter in model.parameters()) == 7850


# Of 64 inputs two neurons, then one, and the read-out; or two neurons of 9 synapses and the read-out.
LEAST = {"dense": (2 * 65 + 3 + 10 * 2, [2, 1]), "sparse": (2 * 10 + 10 * 3, [2])}


@pytest.mark.parametrize("family", LEAST)
def test_the_smallest_budget_that_has_room_is_taken(family):
    budget, hidden = LEAST[family]
    choice = choose(family, Task.parse("digits"), budget)
    assert (choice.arguments["hidden"], parameters_by_hand(choice)) == (hidden, budget)


@pytest.mark.parametrize(
    ("family", "budget"), [("tree", 59), *((name, least - 1) for name, (least, _) in LEAST.items())]
)
def test_a_budget_too_small_is_refused_with_the_sizes(family, budget):
    message = (
        f"a budget must leave room for two neurons: {budget} parameters do not, from 64 inputs to 10 outputs as "
        f"{FAMILIES[family].title}"
    )
    with pytest.raises(OptionError, match=re.escape(message)):
        choose(family, Task.parse("digits"), budget)


SHAPES = [(1.0,), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0), (1.0, 0.3, 0.1)]


@given(st.sampled_from(SHAPES), st.integers(1, 40), st.integers(1, 12), st.integers(1, 3000))
def test_filling_finds_what_trying_every_width_finds(shape, ins, outs, budget):
    def size(hidden):
        sizes = [ins, *hidden, outs]
        return sum((a + 1) * b for a, b in itertools.pairwise(sizes))

    widths = [[max(1, round(share * width)) for share in shape] for width in range(2, budget + 2)]
    expected = [hidden for hidden in widths if size(hidden) <= budget]
    found = fill_budget("dense-network", {"in_features": ins, "out_features": outs}, shape, budget)
    assert found == (expected[-1] if expected else None)


# ------------------------------------------------------------------------------------------------------ what is drawn


@pytest.mark.parametrize("family", OURS)
def test_rates_are_spread_over_one_range_for_every_family(family):
    lowest, highest = LEARNING_RATES
    rates = [choice.lr for choice in draws(family)]
    assert lowest <= min(rates)
    assert max(rates) <= highest
    places = [math.log(rate / lowest) / math.log(highest / lowest) for rate in rates]
    quarters = np.bincount([min(3, int(4 * place)) for place in places], minlength=4)
    assert quarters.min() >= 2  # of 7 or 8 expected


def test_rates_and_decays_do_not_hang_on_the_family():
    """The same random numbers give the same: they are drawn first, from the same ranges."""
    for seed in range(3):
        found = [choose(family, Task.parse("digits"), 600, seed) for family in OURS]
        assert len({(choice.lr, choice.weight_decay) for choice in found}) == 1


def test_a_choice_is_read_back_from_its_record():
    for family in OURS:
        for choice in draws(family)[:6]:
            job = FairJob("search", Cell(Task.parse("digits"), 500, family), 0, choice, 1)
            assert choice_of(made_trial(job, val_loss=[1.0], val_acc=[0.5])) == choice


@pytest.mark.parametrize(("family", "network"), [(name, FAMILIES[name].network) for name in OURS])
def test_every_choice_builds_a_model_that_gives_logits(family, network):
    for choice in draws(family)[:4]:
        assert isinstance(choice, Configuration)
        assert choice.network == network
        assert (choice.arguments["output"], choice.arguments["in_features"], choice.arguments["out_features"]) == (
            "logits",
            64,
            10,
        )
        assert choice.dropout == choice.arguments["dropout"]
        assert create_model(choice.network, **choice.arguments).output.__class__.__name__ == "Identity"


def seen(choices, key):
    return {repr(choice.arguments[key]) for choice in choices}


def test_everything_that_may_be_chosen_is_tried():
    tree, sparse, dense, linear = (draws(family) for family in (*SIZED, "linear"))
    for choices in (tree, sparse, dense, linear):
        assert len(seen(choices, "dropout")) >= 2
        assert len({choice.weight_decay for choice in choices}) >= 2
        assert len({choice.rewired for choice in choices}) == (2 if choices in (tree, sparse) else 1)
    for choices in (tree, sparse, dense):
        assert len(seen(choices, "norm")) == 2
    assert {len(choice.arguments["hidden"]) for choice in dense} == {1, 2}
    for choices in (tree, sparse):
        assert {choice.arguments["branching"][0] for choice in choices} == {9, 16, 25, 36, 49}
        wirings = [choice.arguments["wiring"] for choice in choices]
        assert {(wiring.per, wiring.place) for wiring in wirings} >= {("dendrite", "free"), ("dendrite", "near")}
        assert len({wiring.window for wiring in wirings}) > 3
    assert {isinstance(choice.arguments["branching"][-1], list) for choice in tree} == {True, False}  # bypass or not


@pytest.mark.parametrize("name", ["digits", "mnist-pairs"])
def test_trees_and_sparse_perceptrons_of_images_read_windows_that_hold_a_dendrite(name):
    task = Task.parse(name)
    for family in ("tree", "sparse"):
        for choice in draws(family) if name == "digits" else draws(family, name, 3500, 6):
            wiring = choice.arguments["wiring"]
            assert isinstance(wiring, Local)
            assert wiring.image_shape == task.image_shape
            assert wiring.seed is None  # drawn with the weights, from the trial's seed
            assert wiring.window <= min(task.image_shape[1:])
            assert wiring.window**2 >= choice.arguments["branching"][0]


def test_trees_and_sparse_perceptrons_of_tables_read_columns_by_chance():
    for family in ("tree", "sparse"):
        choices = draws(family, "adult", 400, 8)
        assert all(choice.arguments["wiring"] == Random() for choice in choices)
        assert {len(choice.arguments["hidden"]) for choice in choices} == {1, 2}


# ------------------------------------------------------------------------------- families that share weights in images


@pytest.mark.parametrize("family", FOR_IMAGES)
@pytest.mark.parametrize(("dataset", "budget"), [("mnist", 4000), ("cifar10", 18000), ("digits", 1000)])
def test_a_family_that_shares_weights_fills_its_budget(family, dataset, budget):
    for seed in range(thorough(1, 3)):
        choice = choose(family, Task.parse(dataset), budget, seed)
        (width,) = choice.arguments["hidden"]
        sizes = [
            sum(p.numel() for p in create_model(choice.network, **choice.arguments | {"hidden": [w]}).parameters())
            for w in (width, width + 1)
        ]
        assert sizes[0] <= budget < sizes[1]


def test_copies_of_a_dendrite_find_their_places_on_a_small_image():
    task = Task.parse("digits")
    drawn = [FAMILIES["tied"].draw(np.random.default_rng(seed), task) for seed in range(40)]
    for options in drawn:
        options["wiring"].attach(Forest.grow(options["branching"], neurons=30), task.in_features)
    assert {options["branching"][1] for options in drawn} == {4, 9, 16, 25}


@pytest.mark.parametrize(("data", "sizes"), [("mnist", {1, 9, 16, 25}), ("mnist-pairs", {1})])
def test_trees_are_shared_between_neurons_where_read_outs_are_cheap(data, sizes):
    task = Task.parse(data)
    drawn = [FAMILIES["tied"].draw(np.random.default_rng(seed), task)["wiring"] for seed in range(40)]
    assert {wiring.shared_by for wiring in drawn} == sizes


def test_dendrites_of_filters_have_two_synapses_even_in_the_smallest_patch():
    task = Task.parse("digits")
    drawn = [FAMILIES["tree-conv"].draw(np.random.default_rng(seed), task) for seed in range(40)]
    smallest = [options for options in drawn if options["kernel_size"] == 3]
    assert smallest
    for options in smallest:
        synapses, dendrites = options["branching"]
        assert synapses >= 2
        assert 2 * dendrites <= options["fan_in"] <= 9


def test_the_control_of_tied_dendrites_differs_in_nothing_but_their_activation():
    task = Task.parse("cifar10")
    for seed in range(5):
        random = [np.random.default_rng(seed) for _ in range(2)]
        tied, linear = (FAMILIES[name].draw(each, task) for name, each in zip(FOR_IMAGES[:2], random, strict=True))
        assert linear == tied | {"linear_dendrites": True}


def test_families_that_share_weights_need_images():
    with pytest.raises(OptionError, match="need images: adult has none for 'tied'"):
        ComparisonPlan.make(["adult"], families=["tree", "tied"])


@pytest.mark.parametrize(("data", "strides"), [("mnist", {2}), ("digits", {1, 2})])
def test_convolutions_move_by_two_pixels_on_wide_images(data, strides):
    cell = Cell(Task.parse(data), 9000, "conv")
    assert {draw_choice(cell, index).arguments["stride"] for index in range(12)} == strides
