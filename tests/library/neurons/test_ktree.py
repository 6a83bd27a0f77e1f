"""KTree against the equations of Jones and Kording, one Python step per synapse."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, FitConfig, budget, fit
from dendritree.errors import DendritreeError
from dendritree.neurons import KTree
from dendritree.training.examples import Examples, Split
from dendritree.wiring import Random


def leaky(value):
    return value if value > 0 else 0.01 * value


def tree_of(layer, node):
    """The levels of the tree below a node, leaf level first: (weights, bias) of each node; and the inputs it reads."""
    forest, levels, nodes = layer.forest, [], [node]
    while True:
        spans = [range(int(forest.offsets[n]), int(forest.offsets[n + 1])) for n in nodes]
        biases = [0.0 if layer.bias is None else layer.bias[n].item() for n in nodes]
        levels.insert(0, [([layer.weight[e].item() for e in span], c) for span, c in zip(spans, biases, strict=True)])
        rows = [int(forest.source[e]) for span in spans for e in span]
        if rows[0] < forest.in_features:
            return levels, rows
        nodes = [row - forest.in_features for row in rows]


def by_hand(layer, x):
    """One sample through every neuron: trees of leaky sums, then the linear soma."""
    outputs = []
    for soma in layer.forest.roots.tolist():
        begin, end = int(layer.forest.offsets[soma]), int(layer.forest.offsets[soma + 1])
        y = 0.0 if layer.bias is None else layer.bias[soma].item()
        for edge in range(begin, end):
            levels, inputs = tree_of(layer, int(layer.forest.source[edge]) - layer.in_features)
            values = [x[i].item() for i in inputs]
            for level in levels:
                above = []
                for weights, bias in level:
                    children, values = values[: len(weights)], values[len(weights) :]
                    above.append(leaky(sum(w * v for w, v in zip(weights, children, strict=True)) + bias))
                assert values == []
                values = above
            assert len(values) == 1
            y += layer.weight[edge].item() * values[0]
        outputs.append(y)
    return torch.tensor(outputs, dtype=torch.float64)


sizes = st.integers(1, 20)
leading_shapes = st.sampled_from([(3,), (), (2, 3), (0,)])


@given(sizes, st.integers(1, 3), st.integers(1, 3), st.integers(2, 5), st.booleans(), leading_shapes)
def test_outputs_are_those_of_the_equations(inputs, neurons, trees, branching, bias, leading):
    options = {"trees": trees, "branching": branching, "bias": bias, "dtype": torch.float64}
    layer = KTree(inputs, neurons, wiring="random", **options)
    if bias:
        nn.init.normal_(layer.bias)
    x = torch.randn(*leading, inputs, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (*leading, neurons)
    for sample, output in zip(x.reshape(-1, inputs), y.reshape(-1, neurons), strict=True):
        torch.testing.assert_close(output, by_hand(layer, sample))


@pytest.mark.parametrize("wiring", ["original", "permuted", "random"])
def test_gradients_are_those_of_finite_differences(wiring):
    torch.manual_seed(0)
    layer = KTree(16, 2, trees=2, wiring=wiring, dtype=torch.float64)
    x = torch.randn(3, 16, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, layer.weight, layer.bias))


def test_a_binary_tree_pairs_its_inputs_in_the_order_of_the_wiring():
    def pairs(wiring):
        layer = KTree(16, wiring=wiring)
        return tree_of(layer, int(layer.forest.source[-1]) - 16)[1]

    assert pairs("original") == list(range(16))
    assert pairs("permuted") == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]  # 2 x 2 patches of 2 x 2
    assert sorted(pairs("random")) == list(range(16))
    assert pairs(Random(seed=3)) == pairs(Random(seed=3)) != pairs(Random(seed=4))


@pytest.mark.parametrize(("trees", "parameters"), [(1, 3_071), (32, 98_241)])
def test_parameters_and_multiply_adds_on_1024_inputs(trees, parameters):
    counted = budget.count(KTree(1024, trees=trees))
    assert counted.total == parameters
    assert counted.multiply_adds == counted.weights == trees * 2046 + trees


def test_initial_laws():
    torch.manual_seed(0)
    layer = KTree(256, 400, trees=9, branching=4)
    somas = torch.zeros(layer.forest.edges, dtype=torch.bool)
    somas[-400 * 9 :] = True  # one after the other, after all trees
    assert layer.weight[~somas].std().item() == pytest.approx((2 / 4) ** 0.5, rel=0.01)
    assert layer.weight[somas].abs().max().item() <= 1 / 3
    assert layer.weight[somas].std().item() == pytest.approx((1 / 3) / 3**0.5, rel=0.05)
    assert not layer.bias.any()
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(layer.weight, before)


def test_it_learns_a_parity_that_no_linear_unit_can():
    torch.manual_seed(2)
    x = torch.randn(400, 4)
    data = Examples(x, (x[:, 0] * x[:, 1] > 0).long())
    neuron = KTree(4, trees=8)
    config = FitConfig("binary-logits", epochs=60, batch_size=50, lr=0.03)
    assert fit(neuron, Split(data, data, data), config).best.val_acc > 0.95


def test_it_is_a_dendritic_layer_with_repeats():
    layer = KTree(8, 2, trees=3)
    same = DendriticLayer(8, 2, branching=2, wiring="shared", repeats=3, activation=nn.LeakyReLU(0.01))
    same.load_state_dict(layer.state_dict())
    x = torch.randn(5, 8)
    assert torch.equal(layer(x), same(x))
    assert (layer.trees, layer.repeats, layer.in_features, layer.out_features) == (3, 3, 8, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out_features": None}, "out_features"),
        ({"trees": 0}, "trees"),
        ({"branching": 1}, "branching"),
        ({"wiring": "shared"}, "'original', 'permuted', 'random'"),
        ({"wiring": 3}, "wiring"),
        ({"in_features": 10, "wiring": "permuted"}, "9 or 16"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        KTree(**{"in_features": 16, **options})
