"""Random maps through batch normalization and an activation: the kernel against PyTorch in double precision."""

import copy
import random

import torch
from torch import nn

from dendritree.ops.normalize import normalize
from dendritree.training.threads import torch_threads

ACTIVATIONS = (nn.ReLU(), nn.SiLU(), nn.Identity(), nn.LeakyReLU(0.3))


def run(seed, folder):
    """Compare outputs, gradients and statistics of one random case."""
    del folder
    draw = random.Random(seed)
    torch.manual_seed(seed)
    channels, height, width = (
        draw.choice([1, 3, 5, 16, 33, 64, 200, draw.randint(1, 600)]),
        *draw.choices(range(1, 30), k=2),
    )
    batch = max(2, draw.randint(1, 200_000 // (channels * height * width) + 1))
    dtype, activation, threads = (
        draw.choice([torch.float32, torch.float64]),
        draw.choice(ACTIVATIONS),
        draw.randint(1, 3),
    )
    x = torch.randn(batch, channels, height, width, dtype=dtype) * draw.uniform(0.1, 9) + draw.uniform(-5, 5)
    x, gy = (value.contiguous(memory_format=torch.channels_last) for value in (x, torch.randn_like(x)))
    norm = nn.BatchNorm2d(channels, dtype=dtype)
    exact = copy.deepcopy(norm).double()
    with torch_threads(threads):
        mine = _results(normalize, x, norm, activation, gy)
    right = _results(lambda x, norm, activation: activation(norm(x)), x.double(), exact, activation, gy.double())
    tolerance = (1e-3 if dtype == torch.float32 else 1e-10) * batch**0.25
    far = right[0].abs() > tolerance  # elsewhere the sign of z, and so the slope, may differ
    for value, expected in zip(mine, right, strict=True):
        apart = (value - expected).abs()
        apart = apart * far if apart.shape == far.shape else apart
        assert apart.max() <= tolerance * expected.abs().max().clamp_min(1.0), (x.shape, dtype, activation, threads)
    return "equal"


def _results(call, x, norm, activation, gy):
    leaf = x.detach().requires_grad_()
    y = call(leaf, norm, activation)
    gx, _, gb = torch.autograd.grad(y, (leaf, *norm.parameters()), gy)
    return [value.detach().double() for value in (y, gx, gb, norm.running_mean, norm.running_var)]
