"""`ConvNetwork`, the control for images."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dendritree import DendriticConv2d
from dendritree.errors import DendritreeError, ShapeError
from dendritree.layers.activation import make_activation
from dendritree.models import ConvNetwork


def test_it_is_a_convolution_pooling_and_a_read_out():
    torch.manual_seed(0)
    net = ConvNetwork(108, [5], 3, image_shape=(3, 6, 6), kernel_size=3, stride=2, pool=3, activation="tanh")
    convolution = next(m for m in net.modules() if isinstance(m, nn.Conv2d))
    x = torch.randn(7, 108)
    maps = torch.tanh(F.conv2d(x.reshape(7, 3, 6, 6), convolution.weight, convolution.bias, stride=2, padding=1))
    wanted = F.linear(maps.flatten(1), net.readout.weight, net.readout.bias)  # three parts of three places
    torch.testing.assert_close(net(x), wanted)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh", "sigmoid", "silu", nn.LeakyReLU(-0.5), None])
def test_pooling_is_that_of_activations(activation):
    net = ConvNetwork(64, [4], 3, kernel_size=3, pool=3, activation=activation)  # parts that overlap
    x = torch.randn(5, 64, requires_grad=True)
    maps = make_activation(activation)(net.hidden[:2](x))
    wanted = net.readout(F.adaptive_max_pool2d(maps, 3).flatten(1))
    torch.testing.assert_close(net(x), wanted)
    ours, theirs = (torch.autograd.grad(y.square().sum(), x)[0] for y in (net(x), wanted))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("channels", "filters"), [(1, 4), (1, 16), (3, 16)])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 2), (4, 3)])
def test_training_computes_the_same_convolution(channels, filters, kernel, stride):
    options = {"image_shape": (channels, 7, 9), "kernel_size": kernel, "stride": stride, "pool": 1}
    net = ConvNetwork(channels * 63, [filters], 3, **options, dtype=torch.float64)
    convolve, weight = net.hidden[1], net.hidden[1].weight
    x = torch.randn(5, channels, 7, 9, dtype=torch.float64, requires_grad=True)
    trained, plain = convolve(x), F.conv2d(x, weight, convolve.bias, stride, kernel // 2)
    assert trained.is_contiguous(memory_format=torch.channels_last) == (filters == 16)
    torch.testing.assert_close(trained, plain)
    torch.testing.assert_close(convolve.eval()(x), plain)
    upstream = torch.randn_like(plain)
    for ours, theirs in zip(*(torch.autograd.grad(y, (x, weight), upstream) for y in (trained, plain)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_filters_may_have_dendrites():
    net = ConvNetwork(192, [5], 3, image_shape=(3, 8, 8), kernel_size=3, fan_in=12, branching=[4, 3], pool=2)
    layer = net.hidden[1]
    assert isinstance(layer, DendriticConv2d)
    assert sum(p.numel() for p in layer.parameters()) == 5 * (12 + 3 + 4)
    x = torch.randn(4, 192)
    maps = F.relu(layer(x.reshape(4, 3, 8, 8)))
    torch.testing.assert_close(net(x), net.readout(F.max_pool2d(maps, 4).flatten(1)))
    whole = ConvNetwork(192, [5], 3, image_shape=(3, 8, 8), kernel_size=3, branching="auto", pool=2)
    assert whole.hidden[1].forest.fan_in_of_neuron.tolist() == [27] * 5


@pytest.mark.parametrize("branching", [None, [3, 3]])
def test_any_leading_dimensions(branching):
    net = ConvNetwork(64, [4], 3, kernel_size=3, pool=2, norm="batch", branching=branching).eval()
    x = torch.randn(2, 3, 64)
    rows = net(x.reshape(6, 64))
    torch.testing.assert_close(net(x), rows.reshape(2, 3, 3))
    torch.testing.assert_close(net(x[0, 0]), rows[0])
    assert net(x[:0]).shape == (0, 3, 3)
    with pytest.raises(ShapeError, match="the last dimension of the input must be in_features 64: got"):
        net(x[..., 1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": [3, 4]}, "the number of filters"),
        ({"stride": 4, "pool": 3}, "at most the 2 places"),
        ({"norm": "layer"}, "batch"),
        ({"fan_in": 5}, "branching"),
        ({"image_shape": (2, 8, 8)}, "must hold all inputs"),
        ({"kernel_size": 0}, "kernel_size"),
        ({"in_features": 65}, "square image"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        ConvNetwork(**{"in_features": 64, "hidden": [3], "out_features": 2, **options})
