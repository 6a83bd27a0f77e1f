"""`ConvNetwork`: dendritic stages, and those of its controls."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from dendritree import count, explain, load, save
from dendritree.errors import DendritreeError, OptionError
from dendritree.models import ConvNetwork
from dendritree.models.conv_network import STAGES


def trained(net, x):
    """With running statistics that are not those of the beginning."""
    for _ in range(3):
        net.train()(x)
    return net.eval()


def test_a_dendritic_stage_is_a_convolution_and_two_depthwise_ones():
    torch.manual_seed(0)
    options = {"image_shape": (3, 8, 8), "pool": None, "activation": "silu"}
    net = trained(ConvNetwork(192, [5], 3, **options), x := torch.randn(7, 3, 8, 8))
    layer, norm = net.hidden[1], net.hidden[2]
    first, second, third = torch.split(layer.weight, [135, 45, 45])
    dendrites = F.silu(layer.dendrite_norm[0](F.conv2d(x, first.view(5, 3, 3, 3), padding=2)))
    branches = F.silu(layer.dendrite_norm[1](F.conv2d(dendrites, second.view(5, 1, 3, 3), groups=5)))
    maps = F.silu(norm(F.conv2d(branches, third.view(5, 1, 3, 3), stride=2, groups=5)))
    assert maps.shape == (7, 5, 3, 3)
    torch.testing.assert_close(net(x), net.readout(maps.flatten(1)))
    torch.testing.assert_close(net(x.flatten(1)), net(x))


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_a_plain_stage_is_convolutions_and_max_pooling(activation):
    torch.manual_seed(0)
    options = {"image_shape": (3, 8, 8), "stage": "plain", "activation": activation}
    net = trained(ConvNetwork(192, [5], 3, **options), x := torch.randn(7, 3, 8, 8))
    first, norm, _, second, after = net.hidden[1:6]
    act = getattr(F, activation)
    maps = act(after(F.conv2d(act(norm(F.conv2d(x, first.weight, padding=1))), second.weight, padding=1)))
    maps = F.max_pool2d(maps, 3, 2, 1)
    torch.testing.assert_close(net(x), net.readout(F.adaptive_avg_pool2d(maps, 2).flatten(1)))


@pytest.mark.parametrize(
    ("stage", "per_stage"),
    [
        ("dendritic", 5 * 9 * 6 + 2 * 6 * 9 + 3 * 2 * 6),
        ("linear", 5 * 9 * 6 + 2 * 6 * 9 + 3 * 2 * 6),
        ("plain", 5 * 9 * 6 + 6 * 9 * 6 + 2 * 2 * 6),
        ("separable", 5 * 9 + 2 * 5 + 5 * 6 + 2 * 6),
        ("blueprint", 5 * 6 + 6 * 9 + 2 * 6),
    ],
)
def test_parameters_of_a_stage(stage, per_stage):
    one, two = (ConvNetwork(256, hidden, 1, stage=stage, pool=1) for hidden in ([5], [5, 6]))
    assert count(two).total - count(one).total == per_stage + 6 - 5  # the read-out reads as many averages


@given(
    st.sampled_from(STAGES),
    st.sampled_from([(1, 9, 9), (3, 16, 9), (2, 1, 40), (4, 33, 1), (1, 28, 56)]),
    st.integers(1, 2),
    st.sampled_from([1, 3, 5]),
    st.sampled_from([2, 3]),
    st.sampled_from([None, 1, 2, 5]),
    st.sampled_from([None, 2, 3]),
)
def test_images_and_sequences_of_any_shape(stage, shape, stages, kernel, places, pool, depth):
    features = shape[0] * shape[1] * shape[2]
    options = {"stage": stage, "kernel_size": kernel, "places": places, "pool": pool, "depth": depth}
    net = ConvNetwork(features, [3, 4][:stages], 2, image_shape=shape, **options)
    x = torch.randn(3, *shape)
    assert net(x).shape == (3, 2)
    net(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize("stage", ["dendritic", "linear", "separable", "blueprint"])
def test_contributions_of_pixels_add_up(stage):
    torch.manual_seed(0)
    net = trained(ConvNetwork(300, [4, 5], 3, image_shape=(3, 10, 10), stage=stage), x := torch.randn(6, 3, 10, 10))
    parts = explain(net, x, reference=x.mean(0))
    assert parts.check() < 1e-10
    assert parts.inputs.shape == (6, 3, 3, 10, 10)
    torch.testing.assert_close(parts.output.float(), net(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(explain(net, x.flatten(1)).inputs, explain(net, x).inputs.flatten(2))


def test_max_pooling_is_not_explained():
    with pytest.raises(OptionError, match="MaxPool2d"):
        explain(ConvNetwork(64, [3], stage="plain"), torch.randn(2, 64))


def test_multiply_adds_are_those_of_the_convolutions():
    net = ConvNetwork(784, [5, 7], pool=None)
    first = 5 * 9 * (30 * 30 + 28 * 28 + 13 * 13)
    second = 7 * (15 * 15 * 45 + 13 * 13 * 9 + 6 * 6 * 9)
    assert count(net).multiply_adds == first + second + 7 * 36 * 10
    plain = ConvNetwork(784, [5], stage="plain", depth=1, pool=None)
    assert count(plain).multiply_adds == 5 * 784 * 9 + 5 * 196 * 10


@pytest.mark.parametrize("stage", STAGES)
def test_saved_and_loaded(stage, tmp_path):
    net = trained(ConvNetwork(192, [4, 6], 3, image_shape=(3, 8, 8), stage=stage), x := torch.randn(5, 192))
    save(net, tmp_path / "net")
    assert torch.equal(load(tmp_path / "net")(x), net(x))


def test_one_seed_one_network():
    nets = []
    for _ in range(2):
        torch.manual_seed(3)
        nets.append(ConvNetwork(64, [3, 4], stage="blueprint"))
    assert all(torch.equal(*pair) for pair in zip(*(net.state_dict().values() for net in nets), strict=True))
    assert not any(isinstance(m, nn.Conv2d) and m.bias is not None for m in nets[0].modules())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage": "residual"}, "'dendritic'"),
        ({"kernel_size": 4}, "odd"),
        ({"kernel_size": [3]}, "2 stages"),
        ({"places": 0}, "places"),
        ({"depth": 1}, "depth"),
        ({"activation": "relux"}, "relu"),
        ({"pool": 0}, "pool"),
        ({"hidden": [3, 3, 3]}, "stage 3"),
        ({"image_shape": (3, 8, 8)}, "pixels"),
        ({"in_features": 50}, "square"),
    ],
)
def test_what_does_not_fit_is_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        ConvNetwork(**{"in_features": 64, "hidden": [3, 4], "out_features": 2, **options})


@pytest.mark.parametrize("shape", [(3, 63), (1, 8, 9), (2, 2, 8, 8), (64,)])
def test_inputs_must_be_images_or_rows(shape):
    with pytest.raises(DendritreeError, match="images of shape"):
        ConvNetwork(64, [3])(torch.randn(shape))
