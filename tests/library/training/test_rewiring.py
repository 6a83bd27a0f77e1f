"""rewire: which synapses move and where to, and that what they had learned is forgotten; trees and counts stay."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rewired_cases import LAYERS, inputs_by, make_layer, synapses

from dendritree import DendriticLayer
from dendritree.errors import OptionError
from dendritree.training.rewiring import rewire

FRACTIONS = (0.0, 0.1, 0.3, 0.999)


def by_seed(seed):
    return np.random.default_rng(seed)


def expected_edges(layer, fraction):
    """The weakest synapses of each neuron, counted one by one."""
    strength = layer.weight.detach().abs().tolist()
    weakest = []
    for neuron in range(layer.out_features):
        edges = [edge for owner, _, edge, _ in synapses(layer) if owner == neuron]
        weakest += sorted(edges, key=strength.__getitem__)[: math.floor(fraction * len(edges))]
    return sorted(weakest)


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


@pytest.mark.parametrize(
    "seeded", [lambda seed: {"random": by_seed(seed)}, lambda seed: torch.manual_seed(seed) and {}]
)
def test_a_generator_or_torch_s_seed_governs_what_moves(seeded):
    sources = []
    for seed in (5, 5, 6):
        layer = make_layer("random")
        rewire(layer, 0.5, **seeded(seed))
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
    results = {}
    for backend in ("fused", "eager", "reference"):
        layer.backend = backend
        layer.zero_grad()
        y = layer(x)
        y.square().sum().backward()
        results[backend] = [y.detach(), *(p.grad.clone() for p in layer.parameters())]
    for backend in ("fused", "eager"):
        torch.testing.assert_close(results[backend], results["reference"])


@pytest.mark.parametrize("name", LAYERS)
def test_afterwards_the_state_dict_brings_the_new_wiring(name):
    layer, twin = make_layer(name), make_layer(name, seed=1)
    rewire(layer, 0.6, random=by_seed(0))
    twin.load_state_dict(layer.state_dict())
    x = torch.randn(4, layer.in_features)
    assert torch.equal(twin(x), layer(x))
    assert twin.forest == layer.forest


# ---------------------------------------------------------------------------------------------------- what is forgotten

OPTIMIZERS = {
    "adam": (torch.optim.Adam, {}, {"exp_avg", "exp_avg_sq"}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}, {"momentum_buffer"}),
    "plain": (torch.optim.SGD, {}, set()),
}


@pytest.mark.parametrize(("kind", "name"), [*zip(OPTIMIZERS, ("random", "nested", "k-tree", "random"), strict=True)])
def test_the_optimizer_forgets_the_moved_synapses_alone(kind, name):
    build, options, memories = OPTIMIZERS[kind]
    layer = make_layer(name)
    optimizer = build(layer.parameters(), lr=0.01, **options)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.randn(20, layer.in_features)).square().mean().backward()
        optimizer.step()
    before = copy.deepcopy(optimizer.state[layer.weight])
    before_bias = copy.deepcopy(optimizer.state[layer.bias])
    moved = rewire(layer, 0.4, optimizer, random=by_seed(0))
    stay = torch.ones(len(layer.weight), dtype=torch.bool)
    stay[moved] = False
    after = optimizer.state[layer.weight]
    assert after.keys() == before.keys()
    assert {key for key, value in after.items() if torch.is_tensor(value) and value.dim()} == memories
    for key in memories:
        assert (after[key][moved] == 0).all(), key
        assert torch.equal(after[key][stay], before[key][stay]), key
        assert (before[key][stay] != 0).any(), key
        assert torch.equal(optimizer.state[layer.bias][key], before_bias[key]), key
    if "step" in before:
        assert torch.equal(after["step"], before["step"])


def test_a_synapse_that_moved_learns_from_its_new_input():
    """With plain gradient descent its first step is -lr times the gradient at weight 0."""
    layer = DendriticLayer(20, 1, branching=[4], wiring="random", activation=None, dtype=torch.float64)
    moved = rewire(layer, 0.5, random=by_seed(0))
    x = torch.randn(7, 20, dtype=torch.float64)
    layer(x).sum().backward()
    read = {edge: read for _, _, edge, read in synapses(layer)}
    for edge in moved.tolist():
        torch.testing.assert_close(layer.weight.grad[edge], x[:, read[edge]].sum())


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("layer", "fraction", "message"),
    [
        (lambda: DendriticLayer(16, 1, branching=4, wiring="strided"), 0.5, "Strided"),
        (lambda: DendriticLayer(16, 1, branching=4, wiring="shared"), 0.5, "Shared"),
        (lambda: make_layer("random"), 1.0, "fraction"),
        (lambda: make_layer("random"), math.nan, "fraction"),
        (lambda: torch.nn.Linear(4, 2), 0.5, "Linear"),
    ],
)
def test_what_cannot_be_rewired_is_rejected_and_stays(layer, fraction, message):
    layer = layer()
    weight = layer.weight.detach().clone()
    with pytest.raises(OptionError, match=message):
        rewire(layer, fraction)
    assert torch.equal(layer.weight, weight)
