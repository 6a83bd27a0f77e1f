"""k-trees: several trees per neuron, joined by a linear soma."""

import pytest
import torch
from forests import as_lists

from dendritree import DendriticLayer
from dendritree.errors import DendritreeError
from dendritree.wiring import Custom, Morton, Patches, Random


def test_one_wiring_is_that_of_every_tree():
    layer = DendriticLayer(40, 3, branching="auto", fan_in=9, wiring="random", repeats=4)
    for neuron in as_lists(layer.forest):
        assert len(neuron) == 4
        assert all(tree == neuron[0] for tree in neuron)


def test_a_list_gives_each_tree_its_own_wiring():
    wirings = [Morton(), Patches(side=2), Random(seed=1), Custom([[*range(16)]] * 2)]
    layer = DendriticLayer(16, 2, branching=4, wiring=["morton", *wirings[1:]], repeats=4)
    alone = [as_lists(DendriticLayer(16, 2, branching=4, wiring=wiring).forest) for wiring in wirings]
    assert as_lists(layer.forest) == [list(trees) for trees in zip(*alone, strict=True)]
    assert layer.wirings == tuple(wirings)
    assert layer.coverage().tolist() == [8] * 16


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


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats"),
        ({"repeats": "2"}, "repeats"),
        ({"wiring": ["shared"]}, "one for each repeated tree: got 1"),
        ({"wiring": ["shared"] * 3, "repeats": 2}, "got 3, repeats 2"),
        ({"wiring": ["shared", "mortn"], "repeats": 2}, "did you mean 'morton'"),
        ({"wiring": ["shared", 3], "repeats": 2}, "wiring"),
        ({"wiring": ["shared", "partition"], "repeats": 2}, "same number of synapses"),
    ],
)
def test_invalid_repeats_and_lists_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 16, "out_features": 2, "branching": 4, **options})
