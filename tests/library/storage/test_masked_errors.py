"""What the bridge to the authors' format rejects."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer
from dendritree.errors import FormatError, OptionError
from dendritree.ops import make_plan
from dendritree.storage.masked import from_masked, load_masked, to_masked
from dendritree.tree import Forest


def state_of(shapes):
    """Dense matrices of these shapes, with biases, under the authors' names."""
    state = {f"weights.{i}.weight": torch.randn(shape) for i, shape in enumerate(shapes)}
    return state | {f"weights.{i}.bias": torch.randn(shape[0]) for i, shape in enumerate(shapes)}


def give_forest(layer, forest):
    """Put other trees into a layer, as pruning does."""
    layer.forest, layer._plan = forest, make_plan(forest)
    layer.weight = nn.Parameter(torch.arange(1.0, forest.edges + 1))
    layer.bias = nn.Parameter(torch.zeros(forest.nodes))
    layer.in_features, layer.out_features = forest.in_features, forest.neurons
    return layer


UNBALANCED = {
    "a synapse on the root": Forest.nested([[2], 3]),
    "trees of two depths": Forest.join([Forest.grow(2, fan_in=4), Forest.grow(3, fan_in=3)]),
}


@pytest.mark.parametrize("forest", UNBALANCED.values(), ids=UNBALANCED.keys())
def test_unbalanced_trees_have_no_place_in_their_layout(forest):
    layer = give_forest(DendriticLayer(4, 1, branching=2), forest)
    with pytest.raises(OptionError, match="balanced trees: got a tree with leaves at several levels"):
        to_masked(layer)


@pytest.mark.parametrize(
    ("forest", "shapes"),
    [(UNBALANCED["a synapse on the root"], [(1, 5), (1, 4)]), (UNBALANCED["trees of two depths"], [(3, 7), (1, 3)])],
    ids=UNBALANCED.keys(),
)
def test_nothing_is_loaded_into_unbalanced_trees(forest, shapes):
    layer = give_forest(DendriticLayer(4, 1, branching=2), forest)
    before = layer.weight.detach().clone()
    with pytest.raises(OptionError, match="balanced trees: got a tree with leaves at several levels"):
        load_masked(layer, state_of(shapes))
    assert torch.equal(layer.weight, before)


def changed(**changes):
    """The state of 16 inputs, one neuron, b = 4, with entries replaced (underscores for dots) or removed."""
    state = state_of([(4, 16), (1, 4)])
    for key, value in changes.items():
        key = key.replace("_", ".")
        if value is None:
            del state[key]
        else:
            state[key] = value
    return state


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (changed(weights_0_weight=torch.ones(4, 15)), r"weights.0.weight must have shape \(4, 16\).*: got \(4, 15\)"),
        (changed(weights_1_weight=torch.ones(4)), r"weights.1.weight must have shape \(1, 4\).*: got \(4,\)"),
        (changed(weights_0_bias=torch.ones(4, 1)), r"weights.0.bias must have shape \(4,\).*: got \(4, 1\)"),
        (changed(weights_1_bias=torch.ones(2)), r"weights.1.bias must have shape \(1,\).*: got \(2,\)"),
        (changed(weights_1_weight=None), r"weights.1.weight must have shape \(1, 4\).*: got none"),
        (changed(weights_0_bias=None), r"weights.0.bias must have shape \(4,\).*: got none"),
        (changed(weights_2_weight=torch.ones(1, 1)), r"weights.2.weight must have shape none.*: got \(1, 1\)"),
        (changed(masks_0=torch.ones(4, 16)), r"masks.0 must have shape none.*: got \(4, 16\)"),
        (state_of([(8, 16), (4, 8), (2, 4), (1, 2)]), r"weights.0.bias must have shape \(4,\).*: got \(8,\)"),
        ({}, r"weights.0.bias must have shape \(4,\).*: got none"),
    ],
)
def test_a_state_that_does_not_fit_is_rejected_and_nothing_is_copied(state, message):
    layer = DendriticLayer(16, 1, branching=4)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    with pytest.raises(FormatError, match=message):
        load_masked(layer, state)
    assert torch.equal(layer.weight, weight)
    assert torch.equal(layer.bias, bias)


def test_biases_are_not_dropped_silently():
    layer = DendriticLayer(16, 1, branching=4, bias=False)
    weight = layer.weight.detach().clone()
    with pytest.raises(FormatError, match=r"weights.0.bias must have shape none.*: got \(4,\)"):
        load_masked(layer, changed())
    assert torch.equal(layer.weight, weight)


CHAIN = r"weights.0.weight, weights.1.weight ... must chain from the inputs to the roots: got "


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, CHAIN + r"\[\]"),
        (
            changed() | {"neurons.weights.0.weight": torch.ones(4, 16)},
            r"one layer, one weights.0.weight: got 2 of them",
        ),
        ({"weights.1.weight": torch.ones(1, 4)}, CHAIN + r"\[\]"),
        ({"weights.0.weight": torch.ones(4)}, CHAIN + r"\[\(4,\)\]"),
        ({"weights.0.weight": torch.ones(4, 16), "weights.1.weight": torch.ones(1, 5)}, CHAIN + r".*\(1, 5\)"),
        ({"weights.0.weight": torch.ones(3, 16)}, CHAIN + r"\[\(3, 16\)\]"),
        ({"weights.0.weight": torch.ones(0, 16)}, CHAIN + r"\[\(0, 16\)\]"),
        (changed(weights_0_bias=None), r"weights.1.bias must have shape none.*: got \(1,\)"),
        (changed(weights_1_bias=None), r"weights.1.bias must have shape \(1,\).*: got none"),
        (changed(weights_3_weight=torch.ones(1, 1)), r"weights.3.weight must have shape none.*: got \(1, 1\)"),
        (changed(sigmoid=torch.ones(2)), r"sigmoid must have shape none.*: got \(2,\)"),
    ],
)
def test_no_layer_is_built_from_a_state_that_is_no_tree(state, message):
    with pytest.raises(FormatError, match=message):
        from_masked(state)


def test_an_unknown_wiring_is_rejected():
    with pytest.raises(OptionError, match=r"wiring must be one of .*: got 'share'; did you mean 'shared'"):
        from_masked(changed(), wiring="share")
