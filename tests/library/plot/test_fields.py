"""What branches read and with which weight: against loops over the edges."""

import numpy as np
import pytest
import torch
from forests import NAMED, as_lists, edges_of, flat

from dendritree import DendriticLayer
from dendritree.plot.fields import by_branch, effective_weights, image_of_inputs
from dendritree.wiring import Local


def layer_of_forest(name, **options):
    torch.manual_seed(0)
    return DendriticLayer.from_forest(NAMED[name], backend="eager", dtype=torch.float64, **options)


def by_walk(layer, neuron):
    """For each branch, in order of its dendrite, what it reads: (input, product of weights) pairs."""
    forest, weights, branches = layer.forest, layer.weight.tolist(), {}

    def walk(node, factor, branch):
        for place, row in enumerate(edges_of(forest, node)):
            weight = factor * weights[int(forest.offsets[node]) + place]
            if row < forest.in_features:
                branches.setdefault(branch, []).append((row, weight))
            else:
                child = row - forest.in_features
                walk(child, weight, child if branch == -1 else branch)

    walk(int(forest.roots[neuron]), 1.0, -1)
    return [branches[branch] for branch in sorted(branches)]


@pytest.mark.parametrize("name", NAMED)
def test_branches_and_their_fields(name):
    layer = layer_of_forest(name)
    for neuron in range(layer.out_features):
        wanted = by_walk(layer, neuron)
        counts, field = by_branch(layer, neuron), by_branch(layer, neuron, effective_weights(layer))
        assert counts.shape == field.shape == (len(wanted), layer.in_features)
        for branch, pairs in enumerate(wanted):
            total = np.zeros(layer.in_features)
            for source, weight in pairs:
                total[source] += weight
            np.testing.assert_allclose(field[branch], total, atol=1e-12)
            np.testing.assert_array_equal(counts[branch], np.bincount([s for s, _ in pairs], minlength=len(total)))
        assert counts.sum() == len(flat(as_lists(layer.forest)[neuron]))


@pytest.mark.parametrize("name", ["unequal", "unbalanced, shared", "any order"])
def test_without_an_activation_the_field_is_the_gradient(name):
    layer = layer_of_forest(name, activation=None)
    x = torch.randn(layer.in_features, dtype=torch.float64)
    gradient = torch.autograd.functional.jacobian(layer, x).numpy()
    for neuron in range(layer.out_features):
        np.testing.assert_allclose(
            by_branch(layer, neuron, effective_weights(layer)).sum(0), gradient[neuron], atol=1e-12
        )
    examples = torch.randn(5, layer.in_features, dtype=torch.float64)
    np.testing.assert_allclose(effective_weights(layer, examples), effective_weights(layer), atol=1e-9)


def test_with_examples_slopes_count():
    layer = DendriticLayer(4, 1, branching=2, activation="relu", backend="eager")
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
        layer.bias[1] = -100.0  # a dendrite that never wakes
    assert effective_weights(layer).tolist() == [1, 1, 1, 1]
    assert effective_weights(layer, torch.rand(6, 4) + 0.1).tolist() == pytest.approx([1, 1, 0, 0])


@pytest.mark.parametrize(
    ("layer", "given", "wanted"),
    [
        (DendriticLayer(64, 1, branching=8), None, (1, 8, 8)),
        (DendriticLayer(64, 1, branching=8), (4, 16), (1, 4, 16)),
        (DendriticLayer(48, 1, branching=4, fan_in=4, wiring=Local(2, image_shape=(3, 4, 4))), None, (3, 4, 4)),
    ],
)
def test_the_image_is_as_given_as_wired_or_square(layer, given, wanted):
    assert image_of_inputs(layer, given) == wanted
