"""k-trees: several trees per neuron, joined by a linear soma."""

import itertools

import pytest
import torch
from forests import as_lists
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from wiring_cases import branchings, depth_first, seeds

from dendritree import DendriticLayer, MLNBinaryClassifier, budget
from dendritree.errors import DendritreeError
from dendritree.wiring import Custom, Morton, Patches, Random


@pytest.mark.parametrize(("k", "parameters"), [(None, 3_069), (1, 3_071), (2, 6_141), (32, 98_241)])
def test_binary_k_trees_on_1024_inputs_have_as_many_parameters_as_jones_and_kording_s(k, parameters):
    layer = DendriticLayer(1024, 1, branching=2, wiring="shared", repeats=k)
    assert sum(p.numel() for p in layer.parameters()) == parameters
    assert budget.count(layer).total == parameters
    assert budget.count(MLNBinaryClassifier(1024, branching=2, repeats=k)).total == parameters


def trees_apart(layer):
    """Each repeated tree of every neuron as a layer of its own with the same parameters, and the soma's weights."""
    forest, k = layer.forest, layer.repeats
    apart = []
    for repeat in range(k):
        inputs, weights, biases = [], [], []
        for root in forest.roots.tolist():
            begin = int(forest.offsets[root])
            tree = int(forest.source[begin + repeat]) - forest.in_features
            nodes, edges = depth_first(forest, tree)
            inputs.append([int(forest.source[e]) for e in edges if forest.source[e] < forest.in_features])
            weights.append(layer.weight.detach()[edges])
            biases.append(layer.bias.detach()[nodes])
        apart.append((inputs, weights, biases))
    somas = [layer.weight.detach()[int(forest.offsets[r]) : int(forest.offsets[r + 1])] for r in forest.roots]
    return apart, somas, layer.bias.detach()[forest.roots.tolist()]


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 4), st.data())
def test_equal_separate_trees_and_a_weighted_sum(inputs, neurons, k, data):
    fan_in = data.draw(st.integers(1, 12))
    branching = data.draw(branchings(fan_in))
    wirings = [Random(seed=data.draw(seeds)) for _ in range(k)]
    options = {"branching": branching, "fan_in": fan_in, "dtype": torch.float64}
    layer = DendriticLayer(inputs, neurons, wiring=wirings, repeats=k, **options)
    nn.init.normal_(layer.bias)
    apart, somas, soma_bias = trees_apart(layer)
    x = torch.randn(3, inputs, dtype=torch.float64)
    total = soma_bias.expand(3, -1)
    for repeat, (_, weights, biases) in enumerate(apart):
        single = DendriticLayer(inputs, neurons, wiring=wirings[repeat], **options)
        with torch.no_grad():
            for n, root in enumerate(single.forest.roots.tolist()):
                nodes, edges = depth_first(single.forest, root)
                single.weight[edges] = weights[n]
                single.bias[nodes] = biases[n]
            total = total + single(x) * torch.stack([soma[repeat] for soma in somas])
    torch.testing.assert_close(layer(x), total)


def test_one_wiring_is_that_of_every_tree():
    layer = DendriticLayer(40, 3, branching="auto", fan_in=9, wiring="random", repeats=4)
    for neuron in as_lists(layer.forest):
        assert len(neuron) == 4
        assert all(tree == neuron[0] for tree in neuron)


def test_a_list_gives_each_tree_its_own_wiring():
    layer = DendriticLayer(16, 2, branching=4, wiring=["morton", Patches(side=2), Random(seed=1), Random(seed=2)], repeats=4)
    alone = [
        as_lists(DendriticLayer(16, 2, branching=4, wiring=wiring).forest)
        for wiring in (Morton(), Patches(side=2), Random(seed=1), Random(seed=2))
    ]
    assert as_lists(layer.forest) == [list(trees) for trees in zip(*alone, strict=True)]
    assert layer.wirings == (Morton(), Patches(side=2), Random(seed=1), Random(seed=2))
    assert layer.coverage().tolist() == [8] * 16


def test_names_in_a_list_draw_anew_for_each_tree():
    layer = DendriticLayer(100, 2, branching="auto", fan_in=16, wiring=["random"] * 3, repeats=3)
    for neuron in as_lists(layer.forest):
        assert all(a != b for a, b in itertools.combinations(neuron, 2))


def test_custom_wirings_and_partition_repeat_too():
    layer = DendriticLayer(4, 2, branching=2, wiring=Custom([[0, 1], [2, 3]]), repeats=2)
    assert as_lists(layer.forest) == [[[0, 1], [0, 1]], [[2, 3], [2, 3]]]
    assert as_lists(DendriticLayer(4, 2, branching=2, wiring="partition", repeats=2).forest) == as_lists(layer.forest)


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
        ({"repeats": 0}, r"^repeats must be an integer of at least 1: got 0$"),
        ({"repeats": 2.0}, r"^repeats must be an integer of at least 1: got 2\.0$"),
        ({"repeats": True}, r"^repeats must be an integer of at least 1: got True$"),
        ({"repeats": "2"}, r"^repeats must be an integer of at least 1: got '2'$"),
        ({"wiring": ["shared"]}, r"^a list of wirings must have one for each repeated tree: got 1, repeats None$"),
        ({"wiring": [], "repeats": 1}, r"^a list of wirings must have one for each .*: got 0, repeats 1$"),
        ({"wiring": ["shared"] * 3, "repeats": 2}, r"^a list of wirings must have .*: got 3, repeats 2$"),
        (
            {"wiring": ["shared", "mortn"], "repeats": 2},
            r"^wiring must be one of .*: got 'mortn'; did you mean 'morton'\?$",
        ),
        ({"wiring": ["shared", 3], "repeats": 2}, r"^wiring must be a name or a Wiring object: got 3$"),
        (
            {"wiring": ["shared", "partition"], "repeats": 2},
            r"^the trees of a neuron must have the same number of synapses: got \[16, 8\] from \[Shared\(\), Part",
        ),
    ],
)
def test_bad_repeats_and_lists_are_refused(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 16, "out_features": 2, "branching": 4, **options})
