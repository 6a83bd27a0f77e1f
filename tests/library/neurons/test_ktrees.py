"""k-trees: several trees per neuron, joined by a linear soma."""

import torch
from forests import as_lists

from dendritree import DendriticLayer


def test_one_wiring_is_that_of_every_tree():
    layer = DendriticLayer(40, 3, branching="auto", fan_in=9, wiring="random", repeats=4)
    for neuron in as_lists(layer.forest):
        assert len(neuron) == 4
        assert all(tree == neuron[0] for tree in neuron)


def test_the_soma_is_linear_and_the_trees_are_not():
    layer = DendriticLayer(2, 1, branching=2, wiring="shared", repeats=2, activation="relu")
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 1, 1, -1, -3, 2]))  # relu(a + b), relu(a - b), their soma
        layer.bias.copy_(torch.tensor([0.0, 0, -5]))
    x = torch.tensor([[1.0, 0], [0, 1], [-1, -1]])
    assert layer(x).flatten().tolist() == [-6.0, -8.0, -5.0]


def test_root_activation_does_not_touch_the_soma():
    layers = [
        DendriticLayer(4, 1, branching=2, wiring="shared", repeats=1, activation="relu", root_activation=r)
        for r in (True, False)
    ]
    layers[1].load_state_dict(layers[0].state_dict())
    x = torch.randn(50, 4)
    assert torch.equal(layers[0](x), layers[1](x))


def test_without_repeats_there_is_no_soma():
    one = DendriticLayer(4, 1, branching=2, wiring="shared", repeats=1)
    none = DendriticLayer(4, 1, branching=2, wiring="shared")
    assert (one.forest.nodes, one.forest.edges) == (none.forest.nodes + 1, none.forest.edges + 1)
    assert none.repeats is None
