"""The kernel for batch normalization and the activation after it matches PyTorch, and is not used where it cannot."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree.models import ConvNetwork
from dendritree.ops import native
from dendritree.ops.normalize import normalize
from dendritree.training.threads import torch_threads

pytestmark = pytest.mark.skipif(native.kernels is None, reason="there are no kernels")
ACTIVATIONS = (nn.ReLU(), nn.SiLU(), nn.Identity(), nn.LeakyReLU(0.2), nn.Tanh(), nn.GELU())
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-11}


def images(*shape, dtype=torch.float32, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (3 * x + 1).to(dtype).contiguous(memory_format=torch.channels_last)


def make_norm(channels, dtype=torch.float32, **options):
    norm = nn.BatchNorm2d(channels, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.uniform_(0.5, 1.5)
    return norm


def results(call, x, norm, gy):
    """Outputs, gradients and running statistics, in double precision."""
    leaf = x.detach().requires_grad_()
    y = call(leaf, norm)
    gradients = torch.autograd.grad(y, (leaf, *norm.parameters()), gy)
    return [value.detach().double() for value in (y, *gradients, norm.running_mean, norm.running_var)]


def is_fused(y):
    """Whether the kernel is in the graph of a result."""
    node = y.grad_fn
    while node is not None and type(node).__name__ != "_NormalizeBackward":
        node = node.next_functions[0][0] if node.next_functions else None
    return node is not None


@given(
    st.integers(1, 9),
    st.integers(1, 40) | st.sampled_from([63, 64, 65, 257]),
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from(ACTIVATIONS),
    st.sampled_from([*TOLERANCE]),
)
def test_outputs_gradients_and_statistics_are_those_of_pytorch(batch, channels, height, width, activation, dtype):
    batch += batch * height * width == 1
    x, norm = images(batch, channels, height, width, dtype=dtype), make_norm(channels, dtype)
    gy = images(*x.shape, dtype=dtype, seed=1)
    exact = copy.deepcopy(norm).double()
    expected = results(lambda x, norm: activation(norm(x)), x.double(), exact, gy.double())
    fused = results(lambda x, norm: normalize(x, norm, activation), x, norm, gy)
    for name, value, right in zip(("y", "x", "weight", "bias", "mean", "var"), fused, expected, strict=True):
        if name == "x" and isinstance(activation, nn.ReLU | nn.LeakyReLU):  # a sign may differ where z is nearly 0
            near = expected[0].abs() < 1e-4
            value, right = value.masked_fill(near, 0.0), right.masked_fill(near, 0.0)
        error = (value - right).abs().max() / right.abs().max().clamp_min(1.0)
        assert error < TOLERANCE[dtype] * max(1.0, x.numel() ** 0.25), name


def test_large_maps_in_several_chunks_have_the_moments_of_double_precision():
    x, norm = images(64, 19, 32, 32) + 100.0, make_norm(19)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    y = normalize(x, norm, nn.Identity())
    assert is_fused(y)
    exact = copy.deepcopy(norm).double().train()
    expected = exact(x.detach().double())
    assert (y - expected).abs().max() < 2e-4  # x itself is rounded to 1e-5 of its standard deviation
    assert torch.allclose(norm.running_var.double() - 0.9, 0.1 * x.detach().double().var((0, 2, 3)), rtol=1e-5)


def test_results_do_not_depend_on_the_number_of_threads():
    x, gy = images(64, 13, 28, 28), images(64, 13, 28, 28, seed=1)
    found = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            found.append(results(lambda x, norm: normalize(x, norm, nn.SiLU()), x, make_norm_of_ones(13), gy))
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def make_norm_of_ones(channels):
    return nn.BatchNorm2d(channels)


def test_second_derivatives_are_right():
    norm = make_norm(3, torch.float64)
    x = images(2, 3, 3, 2, dtype=torch.float64).requires_grad_()
    for activation in (nn.SiLU(), nn.Identity(), nn.LeakyReLU(0.3)):
        assert is_fused(normalize(x, norm, activation))
        call = lambda x, w, b, act=activation: torch.func.functional_call(  # noqa: E731
            _Both(norm, act), {"norm.weight": w, "norm.bias": b}, (x,)
        )
        inputs = x, norm.weight, norm.bias
        assert torch.autograd.gradcheck(call, inputs)
        assert torch.autograd.gradgradcheck(call, inputs)


class _Both(nn.Module):
    def __init__(self, norm, activation):
        super().__init__()
        self.norm, self.activation = norm, activation

    def forward(self, x):
        return normalize(x, self.norm, self.activation)


class Own(nn.BatchNorm2d):
    pass


@pytest.mark.parametrize(
    ("x", "norm"),
    [
        (images(4, 5, 6, 6).contiguous(), make_norm(5)),
        (images(4, 5, 6, 6), make_norm(5).eval()),
        (images(4, 5, 6, 6), make_norm(5, momentum=None)),
        (images(4, 5, 6, 6), nn.BatchNorm2d(5, affine=False)),
        (images(4, 5, 6, 6), make_norm(5, track_running_stats=False)),
        (images(4, 5, 6, 6).bfloat16(), make_norm(5, torch.bfloat16)),
        (images(4, 5, 6, 6), Own(5)),
        (torch.randn(4, 5, 6), nn.BatchNorm1d(5)),
    ],
)
def test_everything_else_is_left_to_pytorch(x, norm):
    x = x.detach().requires_grad_()
    twin = copy.deepcopy(norm)
    y, expected = normalize(x, norm, nn.ReLU()), twin(x).relu()
    assert not is_fused(y)
    assert torch.equal(y, expected)


def test_hooks_of_the_normalization_and_of_the_activation_are_called():
    x, norm, activation, seen = images(4, 5, 6, 6), make_norm(5), nn.ReLU(), []
    activation.register_forward_hook(lambda *_: seen.append("activation"))
    normalize(x, norm, activation)
    norm.register_forward_hook(lambda *_: seen.append("norm"))
    normalize(x, norm, activation)
    assert seen == ["activation", "norm", "activation"]


def test_a_single_value_per_channel_raises_as_in_pytorch():
    with pytest.raises(ValueError, match="more than 1 value"):
        normalize(images(1, 5, 1, 1), make_norm(5), nn.ReLU())


@pytest.mark.parametrize("stage", ["dendritic", "plain", "separable"])
def test_a_network_trains_as_one_without_the_kernel(stage, monkeypatch):
    x, y = torch.randn(16, 192), torch.arange(16) % 3
    torch.manual_seed(0)
    net = ConvNetwork(192, [4, 6], 3, image_shape=(3, 8, 8), stage=stage, pool=None)
    plain = copy.deepcopy(net)
    gradients = []
    for model, fuses in ((net, True), (plain, False)):
        if not fuses:
            monkeypatch.setattr("dendritree.ops.normalize._can_fuse", lambda *_: False)
        nn.functional.cross_entropy(model(x), y).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.allclose(*pair, rtol=1e-3, atol=1e-5) for pair in zip(*gradients, strict=True))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(net.buffers(), plain.buffers(), strict=True))
