"""Layers whose dendrites share weights: every backend, every tool."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, count, prune, summary
from dendritree.training.rewiring import rewire
from dendritree.wiring import Tied


def tied_layer(neurons=5, branching=(6, 4), seed=0, shared_by=1, **options):
    torch.manual_seed(seed)
    wiring = Tied(3, 2, (2, 8, 8), seed=seed, shared_by=shared_by)
    return DendriticLayer(128, neurons, branching=list(branching), wiring=wiring, **options)


def untied_twin(layer):
    """A layer with a weight for every edge, and the same values."""
    twin = DendriticLayer.from_forest(
        layer.forest.tied(None),
        activation=layer.activation,
        root_activation=layer.root_activation,
        dtype=layer.weight.dtype,
    )
    with torch.no_grad():
        twin.weight.copy_(layer.edge_weight)
        twin.bias.copy_(layer.node_bias)
    return twin


@given(
    branching=st.sampled_from([(2, 2), (5, 2), (6, 4), (2, 3, 4), (18, 9)]),
    neurons=st.integers(1, 6),
    shared_by=st.sampled_from([1, 2, 4]),
    batch=st.integers(0, 20),
    seed=st.integers(0, 9),
    activation=st.sampled_from(["leaky_relu", "tanh", "relu", None]),
    root_activation=st.booleans(),
)
def test_all_backends_give_the_sums_of_the_untied_gradients(
    branching, neurons, shared_by, batch, seed, activation, root_activation
):
    options = {"activation": activation, "root_activation": root_activation, "dtype": torch.float64}
    layer = tied_layer(neurons, branching, seed, shared_by, **options)
    twin, forest = untied_twin(layer), layer.forest
    x = torch.randn(batch, 128, dtype=torch.float64, requires_grad=True)
    pull = torch.randn(batch, neurons, dtype=torch.float64)
    gx, gw, gb = torch.autograd.grad((twin(x) * pull).sum(), [x, twin.weight, twin.bias])
    weight, bias = torch.zeros_like(layer.weight), torch.zeros_like(layer.bias)
    for edge, value in enumerate(gw):  # an independent loop
        weight[forest.weight_of_edge[edge]] += value
    for node, value in enumerate(gb):
        bias[forest.bias_of_node[node]] += value
    for backend in ("fused", "eager", "reference"):
        layer.backend = backend
        y = layer(x)
        torch.testing.assert_close(y, twin(x), rtol=1e-9, atol=1e-9)
        actual = torch.autograd.grad((y * pull).sum(), [x, layer.weight, layer.bias])
        for ours, theirs in zip(actual, (gx, weight, bias), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)


def test_shared_weights_are_counted_once():
    layer = tied_layer()
    assert sum(p.numel() for p in layer.parameters()) == 5 * (6 + 4 + 2)
    assert (count(layer).weights, count(layer).biases, count(layer).multiply_adds) == (50, 10, 5 * 28)
    assert "60 parameters" in repr(layer)
    assert "2 of them with weights of their own" in repr(layer)
    assert summary(nn.Sequential(layer)).layers[0].parameters == 60


def test_initial_weights_follow_the_law_of_their_nodes():
    rectified = tied_layer(400, (9, 4))
    assert (rectified.weight[400 * 9 :] == 0.5).all()  # copies of one dendrite: 1 / sqrt(children)
    others = [tied_layer(400, (9, 4), activation=activation) for activation in (None, "tanh")]
    for layer in (rectified, *others):
        assert abs(float(layer.weight.detach()[: 400 * 9].std()) - (2 / 9) ** 0.5) < 0.02
    for layer in others:
        assert abs(float(layer.weight.detach()[400 * 9 :].std()) - (2 / 4) ** 0.5) < 0.04


def test_a_state_dict_brings_its_ties_and_places():
    layer, other = tied_layer(seed=0), tied_layer(seed=1)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(7, 128)
    assert torch.equal(layer(x), other(x))
    assert other.forest == layer.forest
    assert (other.windows == layer.windows).all()


def test_an_untied_layer_rejects_a_tied_state():
    layer = tied_layer()
    wiring = Tied(3, 2, (2, 8, 8))
    other = DendriticLayer.from_forest(layer.forest.tied(None))
    with pytest.raises(RuntimeError, match="weights 140 against 50"):
        other.load_state_dict(layer.state_dict())
    damaged = layer.state_dict()
    damaged["forest_template"] = damaged["forest_template"].flip(0)
    with pytest.raises(RuntimeError, match="template"):
        DendriticLayer(128, 5, branching=[6, 4], wiring=wiring).load_state_dict(damaged)


@pytest.mark.parametrize("budget", [55, 40, 25])
def test_pruned_dendrites_stay_tied_and_answer_the_reference_alike(budget):
    layer = tied_layer(dtype=torch.float64)
    examples, reference = torch.randn(30, 128).double(), torch.randn(128).double()
    small = prune(layer, budget=budget, examples=examples, reference=reference)
    assert sum(p.numel() for p in small.parameters()) <= budget
    torch.testing.assert_close(small(reference), layer(reference))
    template = small.forest.template
    if budget > 30:
        assert template is not None
        assert small.forest.weights < small.forest.edges


def test_synapses_of_copies_move_together():
    layer = tied_layer(dtype=torch.float64)
    before, windows = layer.forest.synapse_inputs.copy(), layer.windows
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.randn(9, 128).double()).sum().backward()
    optimizer.step()
    moved = rewire(layer, 0.5, optimizer, where="window", random=np.random.default_rng(0))
    assert len(moved) == 5 * 3
    assert (layer.weight[moved] == 0).all()
    assert (optimizer.state[layer.weight]["exp_avg"][moved] == 0).all()
    after = layer.forest.synapse_inputs.reshape(5, 4, 6)
    assert ((before.reshape(5, 4, 6) != after).sum(-1) == 3).all()
    corner = windows[:20, 0] * 8 + windows[:20, 1]
    relative = after - corner.reshape(5, 4, 1)
    assert (relative == relative[:, :1]).all()
    _, rest = np.divmod(after, 64)
    inside = (rest // 8 - windows[:20, 0].reshape(5, 4, 1), rest % 8 - windows[:20, 1].reshape(5, 4, 1))
    assert all(((place >= 0) & (place < 3)).all() for place in inside)


def test_a_layer_of_shared_trees_is_a_convolution_of_them():
    """The same weights slid over the image: an independent way to the same numbers."""
    torch.manual_seed(0)
    layer = DendriticLayer(256, 8, branching=[6, 4], wiring=Tied(3, 2, (1, 16, 16), seed=0, shared_by=4))
    x = torch.randn(7, 1, 16, 16)
    actual = layer(x.flatten(1)).reshape(7, 2, 2, 2)
    for tree in range(2):
        own, first = layer.forest.neuron_of_node == 4 * tree, layer.windows[16 * tree]
        kernel = torch.zeros(1, 1, 3, 3)
        pixel = layer.forest.synapse_inputs.reshape(8, 4, 6)[4 * tree, 0]
        kernel[0, 0, pixel // 16 - first[0], pixel % 16 - first[1]] = layer.weight.detach()[6 * tree : 6 * tree + 6]
        biases = layer.node_bias[torch.from_numpy(own)]
        dendrites = layer.activation(nn.functional.conv2d(x, kernel, biases[:1]))
        soma = layer.weight.detach()[12 + 4 * tree : 16 + 4 * tree].reshape(1, 1, 2, 2)
        somata = layer.activation(nn.functional.conv2d(dendrites, soma, biases[-1:], dilation=2))
        torch.testing.assert_close(actual[:, tree], somata[:, 0, ::11, ::11])  # the corners: from edge to edge


def test_dropout_silences_each_place_on_its_own():
    layer, x = tied_layer(1, (18, 4), dropout=0.5, dtype=torch.float64), torch.ones(20, 128).double()
    with torch.no_grad():
        layer.weight[18:] = torch.tensor([1.0, -1.0, 0.0, 0.0])  # of the soma: two places against each other
        assert (layer(x) != 0).sum() > 10
        assert (layer.eval()(x) == 0).all()
