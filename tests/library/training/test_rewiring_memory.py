"""rewire: what a synapse had learned is forgotten when it moves, by the weights, their gradients and the optimizer."""

import copy

import numpy as np
import pytest
import torch
from rewired_cases import make_layer, synapses

from dendritree import DendriticLayer
from dendritree.training.rewiring import rewire


def by_seed(seed):
    return np.random.default_rng(seed)


OPTIMIZERS = {
    "adam": (torch.optim.Adam, {}, {"exp_avg", "exp_avg_sq"}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}, {"exp_avg", "exp_avg_sq"}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}, {"momentum_buffer"}),
    "plain": (torch.optim.SGD, {}, set()),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", ["random", "nested", "k-tree"])
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


def test_a_gradient_of_the_old_input_is_forgotten_too():
    layer = make_layer("random")
    layer(torch.randn(20, 60)).square().mean().backward()
    before = layer.weight.grad.clone()
    moved = rewire(layer, 0.4, random=by_seed(0))
    before[moved] = 0
    assert torch.equal(layer.weight.grad, before)


def test_an_optimizer_that_has_not_stepped_or_holds_other_weights_is_left_alone():
    layer, other = make_layer("random"), make_layer("random")
    optimizer = torch.optim.Adam(other.parameters())
    rewire(layer, 0.5, optimizer, random=by_seed(0))
    assert dict(optimizer.state) == {}
    rewire(other, 0.5, optimizer, random=by_seed(0))
    assert dict(optimizer.state) == {}
