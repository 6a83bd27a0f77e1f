"""The authors' format, against a small layer of masked dense matrices written for these tests."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, MLNClassifier
from dendritree.errors import FormatError, OptionError
from dendritree.storage.masked import from_masked, load_masked, to_masked


class MaskedLayer(nn.Module):
    """The authors' layer: one dense linear map per level, multiplied with a mask of zeros and ones.

    `levels` holds, for each level, the number of children of each node, one after the other. A classifier repeats
    its inputs for each of `repeat` neurons.
    """

    def __init__(self, levels, *, repeat=1, bias=True, slope=0.1):
        super().__init__()
        self.weights = nn.ModuleList(nn.Linear(sum(nodes), len(nodes), bias=bias) for nodes in levels)
        self.masks = []  # a plain list, as theirs: no part of the state dict
        for linear, nodes in zip(self.weights, levels, strict=True):
            nn.init.normal_(linear.weight, std=nodes[0] ** -0.5)  # junk outside the masks too
            mask, first = torch.zeros(len(nodes), sum(nodes)), 0
            for node, children in enumerate(nodes):
                mask[node, first : first + children] = 1.0
                first += children
            self.masks.append(mask)
        self.repeat, self.slope = repeat, slope

    def forward(self, x):
        x = torch.cat([x] * self.repeat, dim=-1)
        for linear, mask in zip(self.weights, self.masks, strict=True):
            x = x @ (linear.weight * mask).T
            if linear.bias is not None:
                x = x + linear.bias
            x = torch.where(x > 0, x, self.slope * x)
        return x


def balanced(in_features, out_features, branching, **options):
    """Their DendriticLayer(in_features, out_features, branching)."""
    levels, rows = [], in_features
    while rows > out_features:
        levels.append([branching] * (rows // branching))
        rows //= branching
    assert rows == out_features
    return MaskedLayer(levels, **options)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def assert_same_outputs(ours, theirs, in_features):
    x = torch.randn(20, in_features)
    y = theirs(x)
    assert y.std() > 0.01  # the inputs matter
    torch.testing.assert_close(ours(x), y, rtol=1e-6, atol=1e-6)


# --------------------------------------------------------------------------------------------------- from their files


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("in_features", "out_features", "branching", "depth"),
    [(16, 1, 2, 4), (125, 1, 5, 3), (10, 5, 2, 1), (243, 3, 3, 4)],
)
def test_their_layer_loads_as_a_partition(in_features, out_features, branching, depth, bias):
    theirs = balanced(in_features, out_features, branching, bias=bias)
    ours = from_masked(theirs.state_dict())
    assert (ours.in_features, ours.out_features, ours.depth) == (in_features, out_features, depth)
    assert ours.branching == (branching,) * depth
    assert (ours.bias is not None) == bias
    assert_same_outputs(ours, theirs, in_features)


@pytest.mark.parametrize(("in_features", "neurons", "branching"), [(16, 3, 4), (27, 1, 3)])
def test_their_classifier_loads_as_shared(in_features, neurons, branching):
    theirs = balanced(in_features * neurons, neurons, branching, repeat=neurons)
    ours = from_masked(theirs.state_dict(), wiring="shared")
    assert (ours.in_features, ours.out_features) == (in_features, neurons)
    assert_same_outputs(ours, theirs, in_features)


def test_their_classifier_loads_into_the_paper_s_model():
    theirs = balanced(160, 10, 4, repeat=10)
    net = MLNClassifier(16, 10, branching=4, output="probabilities")
    load_masked(net.layer, theirs.state_dict())
    x = torch.randn(20, 16)
    torch.testing.assert_close(net(x), torch.softmax(theirs(x), dim=-1), rtol=1e-6, atol=1e-6)


def test_levels_may_branch_differently():
    theirs = MaskedLayer([[4] * 12, [3] * 4, [2] * 2])
    ours = from_masked(theirs.state_dict())
    assert ours.branching == (4, 3, 2)
    assert_same_outputs(ours, theirs, 48)


def test_junk_outside_the_masks_is_ignored():
    theirs = balanced(16, 2, 2)
    clean = from_masked(theirs.state_dict())
    for linear, mask in zip(theirs.weights, theirs.masks, strict=True):
        linear.weight.data[mask == 0] = torch.where(torch.rand(int((mask == 0).sum())) < 0.5, torch.nan, 1e9)
    dirty = from_masked(theirs.state_dict())
    assert torch.equal(dirty.weight, clean.weight)
    assert torch.equal(dirty.bias, clean.bias)


def test_options_reach_the_layer():
    theirs = balanced(16, 1, 4, slope=0.5)
    ours = from_masked(theirs.state_dict(), activation=nn.LeakyReLU(0.5), dropout=0.3)
    assert ours.dropout == 0.3
    assert_same_outputs(ours.eval(), theirs, 16)


# --------------------------------------------------------------------------------------------------- to their files


@given(
    branching=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    neurons=st.integers(1, 4),
    shared=st.booleans(),
    bias=st.booleans(),
)
def test_their_layer_computes_what_ours_does(branching, neurons, shared, bias):
    fan_in = torch.Size(branching).numel()
    in_features = fan_in if shared else fan_in * neurons
    wiring = "shared" if shared else "partition"
    ours = DendriticLayer(in_features, neurons, branching=branching, wiring=wiring, bias=bias)
    nn.init.normal_(ours.weight)
    if bias:
        nn.init.normal_(ours.bias)
    levels, rows = [], fan_in * neurons
    for b in branching:
        rows //= b
        levels.append([b] * rows)
    theirs = MaskedLayer(levels, repeat=neurons if shared else 1, bias=bias)
    theirs.load_state_dict(to_masked(ours))  # strict: every key and every shape
    x = torch.randn(5, in_features)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
    back = from_masked(theirs.state_dict(), wiring=wiring)
    assert torch.equal(back.weight, ours.weight)
    assert (back.bias is None and ours.bias is None) or torch.equal(back.bias, ours.bias)


def test_exported_matrices_are_zero_outside_the_masks_and_no_views():
    layer, theirs = DendriticLayer(16, 2, branching=2, wiring="partition"), balanced(16, 2, 2)
    nn.init.constant_(layer.weight, 3.0)
    state = to_masked(layer)
    for i, mask in enumerate(theirs.masks):
        assert torch.equal(state[f"weights.{i}.weight"], 3.0 * mask)
    for tensor in state.values():
        assert not tensor.requires_grad
        tensor.fill_(9.0)
    assert (layer.weight == 3.0).all()
    assert (layer.bias == 0.0).all()


# --------------------------------------------------------------------------------------------------- ragged trees

RAGGED_10 = [[3, 3, 2, 2], [2, 2], [2]]  # ten inputs, b = 3: the larger nodes come first


@pytest.mark.parametrize("neurons", [1, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_ragged_layers_export_and_load(neurons, shared):
    in_features = 10 if shared else 10 * neurons
    layer = DendriticLayer(in_features, neurons, branching=3, ragged=True, wiring="shared" if shared else "partition")
    theirs = MaskedLayer([level * neurons for level in RAGGED_10], repeat=neurons if shared else 1)
    load_masked(layer, theirs.state_dict())
    assert_same_outputs(layer, theirs, in_features)
    other = MaskedLayer([level * neurons for level in RAGGED_10], repeat=neurons if shared else 1)
    other.load_state_dict(to_masked(layer))
    assert_same_outputs(layer, other, in_features)


# --------------------------------------------------------------------------------------------------- rejections


def state_of(shapes):
    """Dense matrices of these shapes, with biases, under the authors' names."""
    state = {f"weights.{i}.weight": torch.randn(shape) for i, shape in enumerate(shapes)}
    return state | {f"weights.{i}.bias": torch.randn(shape[0]) for i, shape in enumerate(shapes)}


@pytest.mark.parametrize(("branching", "shapes"), [([[2], 3], [(1, 5), (1, 4)]), ([3, [2]], [(2, 5), (1, 4)])])
def test_unbalanced_trees_have_no_place_in_their_layout(branching, shapes):
    layer = DendriticLayer(5, 1, branching=branching)
    before = layer.weight.detach().clone()
    with pytest.raises(OptionError, match="balanced"):
        to_masked(layer)
    with pytest.raises(OptionError, match="balanced"):
        load_masked(layer, state_of(shapes))
    assert torch.equal(layer.weight, before)


def changed(**changes):
    """The state of 16 inputs, one neuron, b = 4, with entries replaced (underscores for dots) or removed."""
    state = state_of([(4, 16), (1, 4)]) | {key.replace("_", "."): value for key, value in changes.items()}
    return {key: value for key, value in state.items() if value is not None}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (changed(weights_0_weight=torch.ones(4, 15)), "weights.0.weight"),
        (changed(weights_1_bias=torch.ones(2)), "weights.1.bias"),
        (changed(weights_1_weight=None), "weights.1.weight"),
        (changed(weights_2_weight=torch.ones(1, 1)), "weights.2.weight"),
        (changed(masks_0=torch.ones(4, 16)), "masks.0"),
        (changed(weights_0_bias=None), "weights.0.bias"),
        ({}, "weights.0"),
    ],
)
def test_a_state_that_does_not_fit_is_rejected_and_nothing_is_copied(state, message):
    layer = DendriticLayer(16, 1, branching=4)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    with pytest.raises(FormatError, match=message):
        load_masked(layer, state)
    assert torch.equal(layer.weight, weight)
    assert torch.equal(layer.bias, bias)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "chain"),
        ({"weights.0.weight": torch.ones(4)}, "chain"),
        ({"weights.0.weight": torch.ones(4, 16), "weights.1.weight": torch.ones(1, 5)}, "chain"),
        ({"weights.0.weight": torch.ones(3, 16)}, "chain"),
        (MaskedLayer(RAGGED_10).state_dict(), "chain"),  # ragged trees cannot be read off the shapes
        (changed() | {"neurons.weights.0.weight": torch.ones(4, 16)}, "one layer"),
        (changed(weights_1_bias=None), "weights.1.bias"),
        (changed(sigmoid=torch.ones(2)), "sigmoid"),
    ],
)
def test_no_layer_is_built_from_a_state_that_is_no_tree(state, message):
    with pytest.raises(FormatError, match=message):
        from_masked(state)
