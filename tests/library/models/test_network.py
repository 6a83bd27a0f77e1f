"""DendriticNetwork: sizes and counts worked out by hand, and every option in a forward pass and a step of training."""

import itertools
import math

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer
from dendritree.budget import count
from dendritree.errors import DendritreeError
from dendritree.layers.linear import Dropout
from dendritree.models import DendriticNetwork
from dendritree.ops import make_plan
from dendritree.ops import reference as reference_op
from dendritree.wiring import Custom, Local, Morton, Random, Strided


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def size_of(net):
    return sum(parameter.numel() for parameter in net.parameters())


def layers_of(net):
    return [step for step in net.hidden if isinstance(step, DendriticLayer)]


def two_levels(fan_in):
    """Parameters of one `auto` tree: its synapses, and for each dendrite an edge to the root and a bias, and the root.

    With fewer than four synapses there is only the root.
    """
    if fan_in < 4:
        return fan_in + 1
    per_dendrite = math.ceil(fan_in / math.isqrt(fan_in))
    dendrites = math.ceil(fan_in / per_dendrite)
    return fan_in + 2 * dendrites + 1


# -------------------------------------------------------------------------------------------------- sizes and counts


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # 6 trees of 4 synapses in 2 dendrites: 6 * (4 + 2 + 2 + 1) = 54; read-out 6 * 3 + 3 = 21
        ({}, 54 + 21),
        ({"norm": "batch"}, 54 + 2 * 6 + 21),
        # 5 trees of min(4, 6) synapses: 45; read-out 5 * 3 + 3 = 18
        ({"hidden": [6, 5]}, 54 + 45 + 18),
        # 5 trees of 2 synapses and a root: 5 * 3
        ({"hidden": [6, 5], "fan_in": [4, 2]}, 54 + 15 + 18),
        # no layer reads more than its inputs: 16 synapses in 4 dendrites, then 6 in 2: 6 * 25, 5 * (6 + 2 + 3)
        ({"hidden": [6, 5], "fan_in": 100}, 150 + 55 + 18),
        # read-out trees of 6 synapses in 2 dendrites: 3 * (6 + 2 + 3)
        ({"readout": "dendritic"}, 54 + 33),
        # a root that reads 3 synapses and a dendrite of 2: 3 + 2 + 1 weights, 2 biases
        ({"fan_in": 5, "branching": [3, [2]]}, 6 * 8 + 21),
        ({"fan_in": 8, "branching": 2}, 6 * (8 + 4 + 2 + 7) + 21),
        ({"wiring": "shared"}, 150 + 21),  # reads all 16
        ({"wiring": Custom([[0, 1, 2, 3]] * 6)}, 54 + 21),
    ],
    ids=repr,
)
def test_parameters_are_those_counted_by_hand(options, expected):
    net = DendriticNetwork(**{"in_features": 16, "hidden": [6], "out_features": 3, "fan_in": 4, **options})
    assert size_of(net) == count(net).total == expected
    assert net(torch.randn(2, 16)).shape == (2, options.get("out_features", 3))


@pytest.mark.parametrize("hidden", [[1], [7], [5, 1, 9], (4, 4, 4, 4)])
@pytest.mark.parametrize("in_features", [1, 3, 10])
@pytest.mark.parametrize("readout", ["linear", "dendritic"])
def test_any_sizes_fit_each_other(in_features, hidden, readout):
    net = DendriticNetwork(in_features, hidden, 7, fan_in=6, readout=readout)
    sizes = [in_features, *hidden]
    assert [(layer.in_features, layer.out_features) for layer in layers_of(net)] == list(itertools.pairwise(sizes))
    trees = sum(n * two_levels(min(6, i)) for i, n in itertools.pairwise(sizes))
    last = 7 * (hidden[-1] + 1) if readout == "linear" else 7 * two_levels(hidden[-1])
    assert size_of(net) == trees + last
    assert net(torch.randn(4, 2, in_features)).shape == (4, 2, 7)


# ------------------------------------------------------------------------------------------------------------ wirings


def test_one_wiring_is_that_of_the_first_layer_the_others_are_random():
    net = DendriticNetwork(64, [9, 8, 7], 3, fan_in=4, wiring=Local(window=3, seed=1))
    assert [layer.wiring for layer in layers_of(net)] == [Local(window=3, seed=1), Random(), Random()]


def test_a_list_gives_each_layer_its_wiring():
    wirings = ["local", Strided(), Morton(image_shape=(2, 5)), Random(seed=4)]
    net = DendriticNetwork(64, [9, 10, 8, 7], 3, fan_in=[4, 3, 10, 2], wiring=wirings)
    layers = layers_of(net)
    assert [layer.wiring for layer in layers] == [Local(), Strided(), Morton(image_shape=(2, 5)), Random(seed=4)]
    assert [layer.fan_in for layer in layers] == [4, 3, 10, 2]


# -------------------------------------------------------------------------------------------- what a network computes


def by_the_reference(layer, x, root_activation=True):
    plan = make_plan(layer.forest)
    return reference_op.dendritic(x, layer.weight, layer.bias, plan.forest, layer.activation, root_activation, None)


@pytest.mark.parametrize("readout", ["linear", "dendritic"])
@pytest.mark.parametrize("norm", [None, "batch", "layer"])
@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_a_network_is_its_layers_one_after_the_other(norm, readout, output):
    options = {"norm": norm, "readout": readout, "output": output, "dropout": 0.3, "synapse_dropout": 0.2}
    net = DendriticNetwork(16, [6, 5], 3, fan_in=4, dtype=torch.float64, **options).eval()
    x = torch.randn(8, 16, dtype=torch.float64)
    y = x
    for layer in layers_of(net):
        y = by_the_reference(layer, y)
        if norm == "batch":  # fresh running statistics: mean 0, variance 1
            y = y / math.sqrt(1 + 1e-5)
        elif norm == "layer":
            y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    linear = readout == "linear"
    y = y @ net.readout.weight.T + net.readout.bias if linear else by_the_reference(net.readout, y, False)
    if output == "probabilities":
        y = y.exp() / y.exp().sum(-1, keepdim=True)
    torch.testing.assert_close(net(x), y)


def test_dropout_silences_whole_neurons_after_the_norm_and_scales_the_rest():
    net = DendriticNetwork(16, [50], 3, fan_in=4, norm="layer", dropout=0.4)
    assert [type(step) for step in net.hidden] == [DendriticLayer, nn.LayerNorm, Dropout]
    x = torch.randn(40, 16)
    kept, all_of_them = net.train().hidden(x), net.eval().hidden(x)
    silent = kept == 0
    assert 0.3 < silent.float().mean() < 0.5
    torch.testing.assert_close(kept[~silent], all_of_them[~silent] / 0.6)


def test_linear_dendrites_leave_the_activation_to_the_somata():
    torch.manual_seed(0)
    net = DendriticNetwork(16, [5], 3, branching=[4, 2], linear_dendrites=True, activation="tanh")
    layer, activation = net.hidden
    assert (type(layer.activation), type(activation)) == (nn.Identity, nn.Tanh)
    x = torch.randn(7, 16)
    torch.testing.assert_close(layer(2 * x), 2 * layer(x))  # biases are 0 at first
    assert torch.equal(net(x), net.readout(torch.tanh(layer(x))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": []}, "one layer or more"),
        ({"hidden": [6, 0]}, "hidden"),
        ({"fan_in": 0}, "fan_in"),
        ({"fan_in": [4, 4]}, "1 hidden layers: got 2"),
        ({"wiring": ["random", "random"]}, "1 hidden layers: got 2"),
        ({"wiring": "radom"}, "did you mean 'random'"),
        ({"norm": "group"}, "norm"),
        ({"readout": "tree"}, "readout"),
        ({"in_features": 15, "wiring": "local"}, "9 or 16 would fit"),
        ({"wiring": "partition"}, "partition"),
    ],
    ids=repr,
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticNetwork(**{"in_features": 16, "hidden": [6], "fan_in": 4, **options})
