"""rewire: which synapses move and where to; trees and counts stay."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rewired_cases import LAYERS, inputs_by, make_layer, synapses

from dendritree import DendriticLayer
from dendritree.errors import FormatError, OptionError
from dendritree.training.rewiring import rewire

FRACTIONS = (0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 0.9, 0.999)


def by_seed(seed):
    return np.random.default_rng(seed)


def expected_edges(layer, fraction):
    """The weakest synapses of each neuron, counted one by one."""
    strength = layer.weight.detach().abs().tolist()
    found = []
    for neuron in range(layer.out_features):
        edges = [edge for owner, _, edge, _ in synapses(layer) if owner == neuron]
        found += sorted(edges, key=strength.__getitem__)[: math.floor(fraction * len(edges))]
    return sorted(found)


# ---------------------------------------------------------------------------------------------------------- what moves


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_the_weakest_synapses_of_each_neuron_move_and_nothing_else(name, fraction):
    layer = make_layer(name)
    before, weight = copy.deepcopy(layer.forest), layer.weight.detach().clone()
    bias = None if layer.bias is None else layer.bias.detach().clone()
    expected = expected_edges(layer, fraction)
    moved = rewire(layer, fraction, random=by_seed(0))
    assert moved.dtype == torch.long
    assert sorted(moved.tolist()) == expected
    # the tree: everything but the inputs of the moved synapses
    stay = np.setdiff1d(np.arange(before.edges), expected)
    assert np.array_equal(layer.forest.offsets, before.offsets)
    assert np.array_equal(layer.forest.roots, before.roots)
    assert np.array_equal(layer.forest.source[stay], before.source[stay])
    assert layer.forest.in_features == before.in_features
    # the weights: those of the moved synapses are 0, the others as they were
    assert (layer.weight[moved] == 0).all()
    assert torch.equal(layer.weight[stay], weight[stay])
    assert bias is None or torch.equal(layer.bias, bias)
    assert sum(p.numel() for p in layer.parameters()) == before.parameters(bias=bias is not None)


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ("few inputs", "one synapse")])
def test_a_synapse_that_moves_changes_its_input_and_no_dendrite_reads_one_twice(name):
    layer = make_layer(name)
    old = {edge: read for _, _, edge, read in synapses(layer)}
    moved = set(rewire(layer, 0.5, random=by_seed(3)).tolist())
    assert moved == {edge for _, _, edge, read in synapses(layer) if read != old[edge]}
    for dendrite, inputs in inputs_by(layer, 1).items():
        assert len(set(inputs)) == len(inputs), dendrite


@pytest.mark.parametrize("name", ["drawn anew", "custom", "nested"])
def test_an_input_that_a_dendrite_lets_go_is_not_taken_up_by_its_next_synapse(name):
    for seed in range(5):
        layer = make_layer(name)
        before = inputs_by(layer, 1)
        moved = set(rewire(layer, 0.5, random=by_seed(seed)).tolist())
        for _, dendrite, edge, read in synapses(layer):
            assert edge not in moved or read not in before[dendrite]


def test_a_dendrite_that_reads_nearly_all_inputs_takes_the_one_that_is_left():
    """Five of six inputs are read; the one synapse that moves has a single place to go to."""
    torch.manual_seed(0)
    layer = DendriticLayer(6, 8, branching=[5], wiring="random")
    left = {node: set(range(6)) - set(inputs) for node, inputs in inputs_by(layer, 1).items()}
    moved = rewire(layer, 0.2, random=by_seed(0)).tolist()
    assert len(moved) == 8
    assert {node: {read} for _, node, edge, read in synapses(layer) if edge in moved} == left


def test_a_dendrite_that_reads_all_inputs_still_moves_and_stays_whole():
    layer = DendriticLayer(4, 3, branching=[4], wiring="random")
    moved = rewire(layer, 0.5, random=by_seed(0))
    assert len(moved) == 6
    assert all(sorted(inputs) == [0, 1, 2, 3] for inputs in inputs_by(layer, 1).values())


def test_ties_and_signs_do_not_matter():
    layer = DendriticLayer(50, 2, branching=[6], wiring="random")
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([-3.0, 2.0, -1.0, 4.0, 5.0, -6.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]))
    moved = rewire(layer, 0.5, random=by_seed(0)).tolist()
    assert moved[:3] == [0, 1, 2]
    assert len(moved) == 6
    assert min(moved[3:]) >= 6


def test_new_inputs_are_spread_over_all_inputs():
    layer = DendriticLayer(20, 400, branching=[4], wiring="random")
    moved = rewire(layer, 0.5, random=by_seed(0)).tolist()
    counts = np.bincount([read for _, _, edge, read in synapses(layer) if edge in moved], minlength=20)
    assert len(moved) == 800
    assert counts.min() > 15  # forty are expected, with a deviation of six
    assert counts.max() < 70


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_weights_of_any_type_move(dtype):
    layer = make_layer("local", dtype=dtype)
    expected = expected_edges(layer, 0.4)
    assert rewire(layer, 0.4, where="window", random=by_seed(0)).tolist() == expected
    assert (layer.weight[expected] == 0).all()


@given(
    in_features=st.integers(1, 30),
    out_features=st.integers(1, 4),
    fan_in=st.integers(1, 12),
    branching=st.sampled_from([2, 3, "auto"]),
    repeats=st.sampled_from([None, 1, 3]),
    fraction=st.floats(0, 1, exclude_max=True),
    seed=st.integers(0, 99),
)
def test_any_layer_moves_its_share_and_reads_nothing_twice_where_that_is_possible(
    in_features, out_features, fan_in, branching, repeats, fraction, seed
):
    torch.manual_seed(seed)
    layer = DendriticLayer(
        in_features, out_features, branching=branching, fan_in=fan_in, wiring="random", repeats=repeats
    )
    expected, before = expected_edges(layer, fraction), inputs_by(layer, 1)
    moved = rewire(layer, fraction, random=by_seed(seed)).tolist()
    assert sorted(moved) == expected
    movers = {}
    for _, dendrite, edge, _ in synapses(layer):
        movers[dendrite] = movers.get(dendrite, 0) + (edge in moved)
    for dendrite, inputs in inputs_by(layer, 1).items():
        if in_features - len(set(before[dendrite])) >= movers[dendrite]:  # a free input for each that moves
            assert len(set(inputs)) >= len(set(before[dendrite])) or not movers[dendrite]
            if len(set(before[dendrite])) == len(inputs):
                assert len(set(inputs)) == len(inputs)


# ----------------------------------------------------------------------------------------------------------- by chance


def test_the_same_random_numbers_move_the_same_and_others_do_not():
    sources = []
    for seed in (5, 5, 6):
        layer = make_layer("random")
        rewire(layer, 0.5, random=by_seed(seed))
        sources.append(layer.forest.source)
    assert np.array_equal(sources[0], sources[1])
    assert not np.array_equal(sources[0], sources[2])


def test_without_random_numbers_torch_s_seed_governs():
    sources = []
    for seed in (5, 5, 6):
        layer = make_layer("random")
        torch.manual_seed(seed)
        rewire(layer, 0.5)
        sources.append(layer.forest.source)
    assert np.array_equal(sources[0], sources[1])
    assert not np.array_equal(sources[0], sources[2])


# ------------------------------------------------------------------------------------------------- afterwards a layer


@pytest.mark.parametrize("name", LAYERS)
def test_afterwards_every_backend_reads_the_new_inputs(name):
    layer = make_layer(name, dtype=torch.float64)
    x = torch.randn(33, layer.in_features, dtype=torch.float64)
    layer(x)  # the old plan has been used
    rewire(layer, 0.6, random=by_seed(0))
    with torch.no_grad():
        layer.weight.normal_()
    found = {}
    for backend in ("fused", "eager", "reference"):
        layer.backend = backend
        layer.zero_grad()
        y = layer(x)
        y.square().sum().backward()
        found[backend] = [y.detach(), *(p.grad.clone() for p in layer.parameters())]
    for backend in ("fused", "eager"):
        torch.testing.assert_close(found[backend], found["reference"])


@pytest.mark.parametrize("name", LAYERS)
def test_afterwards_the_state_dict_brings_the_new_wiring(name):
    layer, twin = make_layer(name), make_layer(name, seed=1)
    rewire(layer, 0.6, random=by_seed(0))
    twin.load_state_dict(layer.state_dict())
    x = torch.randn(4, layer.in_features)
    assert torch.equal(twin(x), layer(x))
    assert twin.forest == layer.forest


def test_the_layer_s_own_rewire_takes_the_same_trees_alone():
    layer, other = make_layer("random"), make_layer("nested")
    before = layer.forest
    with pytest.raises(FormatError, match=r"a layer must be rewired with the same trees: in_features 60 against 40"):
        layer.rewire(other.forest)
    assert layer.forest is before


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("wiring", ["shared", "partition", "strided", "morton"])
def test_a_wiring_with_a_rule_cannot_be_rewired(wiring):
    layer = DendriticLayer(16, 1, branching=4, wiring=wiring)
    before, weight = layer.forest, layer.weight.detach().clone()
    rule = rf"a layer to be rewired must be wired 'random', 'local', 'tied' or custom: got {wiring.title()}\("
    with pytest.raises(OptionError, match=rule):
        rewire(layer, 0.5)
    assert layer.forest is before
    assert torch.equal(layer.weight, weight)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, math.nan, "half", None])
def test_a_fraction_is_a_share(fraction):
    with pytest.raises(OptionError, match=r"fraction must be a probability in \[0, 1\): got "):
        rewire(make_layer("random"), fraction)


def test_a_module_of_another_kind_is_rejected():
    with pytest.raises(OptionError, match=r"a layer to be rewired must be .*: got Linear"):
        rewire(torch.nn.Linear(4, 2), 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adam"}, r"optimizer must be one of torch.optim or None: got 'adam'"),
        ({"random": 5}, r"random must be a numpy.random.Generator or None: got 5"),
    ],
)
def test_helpers_of_another_kind_are_rejected_and_nothing_changes(options, message):
    layer = make_layer("random")
    before, weight = layer.forest, layer.weight.detach().clone()
    with pytest.raises(OptionError, match=message):
        rewire(layer, 0.5, **options)
    assert layer.forest is before
    assert torch.equal(layer.weight, weight)
