"""DendriticLayer: the paper's law, the contract of nn.Linear, and its init."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.wiring import Partition, Shared

# ------------------------------------------------------------------------------------------------------- sizes

PAPER = {"branching": 2, "wiring": "partition"}


@pytest.mark.parametrize("sizes", [(784, 10), (768, 768), (100, 10), (3, 1), (1, 1), (2, 5)])
def test_two_sizes_are_enough_as_for_nn_linear(sizes):
    layer, linear = DendriticLayer(*sizes), nn.Linear(*sizes)
    x = torch.randn(3, sizes[0])
    assert layer(x).shape == linear(x).shape
    assert layer.wiring == Shared()
    assert layer.coverage().tolist() == [sizes[1]] * sizes[0]  # every neuron reads every input


def test_without_out_features_it_is_the_papers_layer():
    assert DendriticLayer(16, branching=2, depth=2).wiring == Partition()
    assert DendriticLayer(16, branching=[4, 2]).out_features == 2


@pytest.mark.parametrize(
    ("arguments", "out_features", "depth", "parameters"),
    [
        ({"in_features": 1024, "out_features": 1, "branching": 32}, 1, 2, 1089),
        ({"in_features": 1024, "out_features": 1, "branching": 2}, 1, 10, 3069),
        ({"in_features": 1024, "branching": 2, "depth": 4}, 64, 4, 64 * 45),
        ({"in_features": 160, "out_features": 10, "branching": 2, "depth": 4, "wiring": "partition"}, 10, 4, 10 * 45),
        ({"in_features": 256, "branching": [16, 8]}, 2, 2, 2 * (128 + 8 + 9)),
        ({"in_features": 1024, "out_features": 10, "branching": 32, "wiring": "shared"}, 10, 2, 10890),
        ({"in_features": 784, "out_features": 1, "branching": 2, "ragged": True}, 1, 10, 2357),
        ({"in_features": 20, "out_features": 2, "branching": 3, "ragged": True, "wiring": "partition"}, 2, 3, 46),
        ({"in_features": 7, "out_features": 2, "branching": 3, "wiring": "shared", "ragged": True}, 2, 2, 2 * 14),
    ],
)
def test_sizes_follow_the_papers_law(arguments, out_features, depth, parameters):
    layer = DendriticLayer(**arguments)
    assert (layer.out_features, layer.depth) == (out_features, depth)
    assert sum(p.numel() for p in layer.parameters()) == parameters
    assert layer(torch.randn(3, layer.in_features)).shape == (3, out_features)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((780, 10, PAPER), "64 or 128 would fit, or ragged=True"),
        ((1024, {"branching": 2}), "give out_features or depth"),
        ((1024,), "out_features must be given .*'auto'"),
        ((6, None, {"branching": [1, [2]]}), "out_features must be given"),
        ((784, 10, {"branching": 2}), "512 or 1024 would fit, or ragged=True"),
        ((160, 10, {"depth": 4}), "depth must be left out for branching 'auto', which grows 2 levels"),
        ((1024, None, {"wiring": "shared"}), "out_features must be given .*'shared'"),
        ((1024, 1, {**PAPER, "depth": 9}), "has depth 10"),
        ((1000, None, {"branching": 2, "depth": 4}), "992 or 1008 would fit"),
        ((8, None, {"branching": 2, "depth": 4}), "got 8; 16 would fit"),
        ((100, 1, {**PAPER, "branching": [16, 8]}), "128 for branching"),
        ((128, 1, {"branching": [16, 8], "depth": 3}), "depth 3"),
        ((785, 2, {**PAPER, "ragged": True}), "784 or 786"),
        ((784, 1, {"branching": 2, "ragged": True, "depth": 3}), "depth 10"),
        ((4, 4, PAPER), "2 would fit, or ragged=True"),
    ],
)
def test_sizes_that_do_not_fit_are_rejected_with_those_that_would(arguments, message):
    *sizes, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises((ShapeError, OptionError), match=message):
        DendriticLayer(*sizes, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"branching": branching}, "branching") for branching in (1, -2, 2.0, "2", [], [2, 1], [2, 2.0])),
        *(({"depth": depth}, "depth") for depth in (0, 2.0)),
        *(({"dropout": p}, "dropout") for p in (float("nan"), -0.1, 1.0, "0.5")),
        ({"dropout_per": "synapses"}, "did you mean 'synapse'"),
        ({"wiring": "share"}, "did you mean 'shared'"),
        ({"wiring": 3}, "wiring"),
        ({"activation": "leakyrelu"}, "did you mean 'leaky_relu'"),
        ({"activation": torch.relu}, "nn.Module"),
        ({"backend": "eagre"}, "did you mean 'eager'"),
    ],
)
def test_bad_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 4, "out_features": 1, **options})


def test_nothing_is_allocated_before_sizes_are_checked():
    with pytest.raises(ShapeError, match=r"fewer than 2\*\*31"):
        DendriticLayer(2**31, 2**15, branching=2, wiring="shared")


# --------------------------------------------------------------------------------------------- what it computes


def test_two_levels_by_hand():
    layer = DendriticLayer(4, 1, branching=2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, -3.0, 1.0, 0.5, 2.0]))
        layer.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
    # dendrites: 1 + 2 + 0.5 = 3.5 and -3 + 1 = -2 -> -0.2; root: 1.75 - 0.4 - 1 = 0.35
    assert layer(torch.ones(4)).item() == pytest.approx(0.35, abs=1e-6)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", torch.relu),
        ("sigmoid", torch.sigmoid),
        ("gelu", nn.functional.gelu),
        ("leaky_relu", lambda x: nn.functional.leaky_relu(x, 0.1)),
        (None, lambda x: x),
        (nn.ELU, nn.functional.elu),
        (nn.LeakyReLU(0.3), lambda x: nn.functional.leaky_relu(x, 0.3)),
        (nn.ReLU(inplace=True), torch.relu),
    ],
)
def test_activations_act_at_every_node(activation, function):
    layer = DendriticLayer(4, 1, branching=2, activation=activation)
    x = torch.randn(6, 4)
    w = layer.weight.detach()
    dendrites = function((x * w[:4]).reshape(6, 2, 2).sum(-1))
    expected = function((dendrites * w[4:]).sum(-1, keepdim=True))
    torch.testing.assert_close(layer(x), expected)
    layer(x).sum().backward()
    linear_root = DendriticLayer(4, 1, branching=2, activation=activation, root_activation=False)
    linear_root.load_state_dict(layer.state_dict())
    torch.testing.assert_close(linear_root(x), (dendrites * w[4:]).sum(-1, keepdim=True))


# -------------------------------------------------------------------------------------------------------- init


def test_weights_start_from_the_density_gain_law_at_every_level():
    torch.manual_seed(0)
    layer = DendriticLayer(64 * 1024, branching=[16, 4, 16])
    forest = layer.forest
    for level, children in zip(forest.levels, (16, 4, 16), strict=True):
        weights = layer.weight[forest.offsets[level.start] : forest.offsets[level.stop]].detach()
        error = (2 / children) ** 0.5 / len(weights) ** 0.5
        assert abs(weights.mean()) < 5 * error
        assert weights.var() == pytest.approx(2 / children, rel=5 * (2 / len(weights)) ** 0.5)
    assert (layer.bias == 0).all()


# ----------------------------------------------------------------------------------------------------- dropout


def test_dropout_is_per_synapse_and_only_while_training():
    layer = DendriticLayer(16, 200, branching=16, wiring="shared", dropout=0.5, activation=None)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    x = torch.ones(50, 16)
    counts = layer(x) / 2  # synapses left, of 16
    assert torch.equal(counts, counts.round())
    assert counts.mean().item() == pytest.approx(8, abs=0.2)
    assert counts.std(dim=1).min() > 1  # neurons differ: each drops its own
    assert torch.equal(layer.eval()(x), torch.full((50, 200), 16.0))


def test_dropout_per_input_is_the_same_for_all_neurons():
    layer = DendriticLayer(16, 20, branching=16, wiring="shared", dropout=0.5, dropout_per="input", activation=None)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    counts = layer(torch.ones(50, 16)) / 2
    assert (counts == counts[:, :1]).all()
    assert counts[:, 0].std() > 1


# ----------------------------------------------------------------------------------- behaves as nn.Linear does


def test_repr_shows_how_it_was_made_and_what_was_grown():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared", dropout=0.2, bias=False, root_activation=False)
    assert repr(layer).splitlines()[1].strip() == (
        "16, 2, branching=4, wiring=Shared(), bias=False, dropout=0.2, dropout_per='synapse', "
        "root_activation=False; 2 trees of 16 synapses, 4 + 1 dendrites; 40 parameters"
    )


@pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.cuda), pytest.param("mps", marks=pytest.mark.mps)]
)
@pytest.mark.parametrize("ragged", [False, True])
def test_other_devices_give_what_the_cpu_gives(device, ragged):
    layer = DendriticLayer(64, 4, branching=5 if ragged else 8, wiring="shared", ragged=ragged)
    x = torch.randn(9, 64)
    expected = layer(x)
    torch.testing.assert_close(layer.to(device)(x.to(device)).cpu(), expected, rtol=1e-4, atol=1e-5)
