"""Convolutions whose dendrites stand at several places: two convolutions that are a forest at every position."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticConv1d, DendriticConv2d, count, load, prune, save
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.layers import trace


def numbers(layer, x):
    """Outputs and all gradients."""
    x = x.clone().requires_grad_()
    layer.zero_grad()
    y = layer(x)
    (y * torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))).sum().backward()
    values = {"output": y.detach(), "x": x.grad, "weight": layer.weight.grad.clone()}
    return values if layer.bias is None else values | {"bias": layer.bias.grad.clone()}


def drawn(layer):
    """Weights and biases that are all different."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))
    return layer


@settings(max_examples=60)
@given(st.data())
def test_outputs_and_gradients_are_those_of_the_forest_at_every_position(data):
    axes = data.draw(st.integers(1, 2))
    kind = DendriticConv2d if axes == 2 else DendriticConv1d
    several = st.lists(st.integers(1, 3), min_size=axes, max_size=axes)
    kernel, places, stride = data.draw(several), data.draw(several.filter(lambda p: max(p) > 1)), data.draw(several)
    padding = data.draw(st.sampled_from(["valid", "same"]) | several.map(lambda p: [n - 1 for n in p]))
    stride = [1] * axes if padding == "same" else stride
    depth = data.draw(st.integers(2, 3))
    channels, neurons, batch = (data.draw(st.integers(least, 3)) for least in (1, 1, 0))
    options = {
        "places": places,
        "depth": depth,
        "bias": data.draw(st.booleans()),
        "root_activation": data.draw(st.booleans()),
        "activation": data.draw(st.sampled_from(["relu", "leaky_relu", "tanh", None])),
        "dtype": torch.float64,
    }
    size = [k + (depth - 1) * (p - 1) + data.draw(st.integers(0, 4)) for k, p in zip(kernel, places, strict=True)]
    placed = drawn(kind(channels, neurons, kernel, stride, padding, **options))
    forest = kind(channels, neurons, kernel, stride, padding, backend="reference", **options)
    forest.load_state_dict(placed.state_dict())
    x = torch.randn(batch, channels, *size, dtype=torch.float64)
    actual, expected = numbers(placed, x), numbers(forest, x)
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-10, atol=1e-10)


def test_parameters_are_those_of_the_tied_tree():
    layer = DendriticConv2d(5, 7, 3, stride=2, places=(2, 3))
    assert sum(p.numel() for p in layer.parameters()) == 7 * (5 * 9 + 1) + 7 * 6 + 7
    assert layer.forest.parameters() == sum(p.numel() for p in layer.parameters())
    assert layer.forest.describe().startswith("7 trees of 270 synapses, 6 + 1 dendrites")
    assert layer.fan_in == 270
    assert layer.depth == 2


def test_a_soma_weighs_rectified_places_equally_at_first():
    torch.manual_seed(0)
    layer = DendriticConv2d(8, 64, 3, places=3, activation="relu")
    weight = layer.weight.detach()
    assert torch.allclose(weight[-64 * 9 :], torch.tensor(1 / 3))
    assert abs(weight[: -64 * 9].std() - (2 / 72) ** 0.5) < 0.01
    assert DendriticConv2d(8, 64, 3, places=3, activation="tanh").weight[-64 * 9 :].std() > 0.1


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_any_leading_dimensions(leading):
    layer = DendriticConv2d(3, 4, 3, stride=2, padding=1, places=3)
    assert layer(torch.randn(*leading, 3, 9, 12)).shape == (*leading, 4, 4, 5)
    assert DendriticConv1d(3, 4, 3, places=2)(torch.randn(*leading, 3, 9)).shape == (*leading, 4, 6)


@pytest.mark.parametrize("bias", [True, False])
def test_normalization_is_folded(bias):
    torch.manual_seed(0)
    layer = DendriticConv2d(3, 4, 3, places=3, dendrite_norm="batch", bias=bias, root_activation=False)
    after, x = nn.BatchNorm2d(4), torch.randn(8, 3, 9, 9)
    for _ in range(3):
        after(layer(x))
    layer.eval(), after.eval()
    both = layer.folded(after)
    torch.testing.assert_close(layer.folded()(x), layer(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both(x), after(layer(x)), rtol=1e-4, atol=1e-5)
    assert both.dendrite_norm is None
    assert layer.dendrite_norm is not None
    patch = x[:, :, 2:7, 1:6]
    roots = trace(both, patch.flatten(1)).values[:, both.forest.roots.tolist()]
    torch.testing.assert_close(roots, after(layer(x))[:, :, 2, 1], rtol=1e-4, atol=1e-5)
    with pytest.raises(OptionError):
        DendriticConv2d(3, 4, 3, places=3).folded(after)


def test_it_is_pytorchs_own_modules():
    layer = drawn(DendriticConv2d(3, 4, 3, (2, 1), 1, places=(3, 2), dendrite_norm="batch")).eval()
    x = torch.randn(2, 3, 8, 8)
    modules = layer.as_convolutions()
    torch.testing.assert_close(modules(x), layer(x))
    assert {type(module).__module__.partition(".")[0] for module in modules} == {"torch"}
    sequence = DendriticConv1d(3, 4, 3, places=3)
    torch.testing.assert_close(sequence.as_convolutions()(x[..., 0, :]), sequence(x[..., 0, :]))
    with pytest.raises(OptionError):
        DendriticConv2d(3, 4, 3).as_convolutions()


def test_channels_last_autocast_compile_and_export():
    layer = DendriticConv2d(4, 6, 3, stride=2, padding=1, places=3, dendrite_norm="batch").eval()
    x = torch.randn(2, 4, 12, 12)
    y = layer(x.contiguous(memory_format=torch.channels_last))
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, layer(x))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="eager")(x), layer(x))
    torch.testing.assert_close(torch.export.export(layer, (x,)).module()(x), layer(x))
    assert layer.to("meta")(x.to("meta")).shape == y.shape


def test_it_is_copied_saved_pruned_and_loaded(tmp_path):
    layer = drawn(DendriticConv2d(3, 4, 3, stride=2, places=3, dendrite_norm="batch")).eval()
    x = torch.randn(2, 3, 11, 11)
    save(layer, tmp_path / "layer")
    assert torch.equal(load(tmp_path / "layer")(x), layer(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))
    assert not [key for key in layer.state_dict() if key.startswith("forest")]
    small = prune(layer, budget=0.5)
    assert count(small).total <= count(layer).total / 2
    whole = prune(layer, threshold=0)
    torch.testing.assert_close(whole(x), layer(x), rtol=1e-4, atol=1e-4)
    save(small, tmp_path / "small")
    assert torch.equal(load(tmp_path / "small")(x), small(x))


def test_dropout_silences_inputs():
    layer = DendriticConv2d(1, 3, 3, places=2, dropout=0.5, dropout_per="input")
    x = torch.ones(1, 1, 6, 6)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"places": 0}, "places"),
        ({"places": (2, 2, 2)}, "height, width"),
        ({"places": 3, "branching": 2}, "branching"),
        ({"places": 3, "wiring": "random"}, "wiring"),
        ({"places": 3, "dilation": 2}, "dilation"),
        ({"places": 3, "dropout": 0.1}, "dropout_per"),
        ({"places": 3, "dendrite_norm": "layer"}, "batch"),
        ({"places": 3, "dendrite_norm": "batch", "backend": "eager"}, "backend"),
        ({"dendrite_norm": "batch"}, "places"),
    ],
)
def test_options_that_do_not_fit_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticConv2d(3, 4, 3, **options)


@pytest.mark.parametrize("shape", [(2, 4, 9, 9), (9, 9), (2, 3, 4, 9)])
def test_inputs_that_do_not_fit_are_rejected(shape):
    with pytest.raises(ShapeError):
        DendriticConv2d(3, 4, 3, places=3)(torch.randn(shape))
