"""The smooth activations of the kernels against NumPy and SciPy in higher precision."""

import numpy as np
import pytest
import torch
from scipy import special
from torch import nn

from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

ONE = make_plan(Forest.nested([1]))
EXACT = {
    nn.Tanh: np.tanh,
    nn.Sigmoid: lambda v: 1 / (1 + np.exp(-v)),
    nn.SiLU: lambda v: v / (1 + np.exp(-v)),
    nn.GELU: lambda v: v * special.ndtr(v.astype(float)),
}
kinds = pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.__name__)
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def compute(kind, v):
    """The activation of a neuron with one synapse of weight 1."""
    return dendritic(v.unsqueeze(1), torch.ones(1, dtype=v.dtype), None, ONE, kind(), backend="fused").squeeze(1)


@dtypes
@kinds
def test_the_error_is_a_few_units(kind, dtype):
    sizes = np.concatenate([np.geomspace(1e-30, 80, 20_000), np.linspace(0, 2, 20_001), np.nextafter(0.25, [0, 1])])
    v = torch.from_numpy(np.concatenate([sizes, -sizes])).to(dtype)
    true = EXACT[kind](v.numpy().astype(np.longdouble))
    error = np.abs(compute(kind, v).numpy() - true)
    units = np.finfo(v.numpy().dtype).eps
    # The exponent times the rounding of log 2; what GELU cancels for negative numbers; and what is subnormal.
    most = (4 * units + (2e-9 if dtype == torch.float32 else 3e-17) * np.abs(v.numpy() / np.log(2))) * np.abs(true)
    most += units * np.minimum(np.abs(v.numpy()), 1) if kind is nn.GELU else 0
    assert (error <= most + np.finfo(v.numpy().dtype).tiny).all()


@dtypes
@kinds
def test_zeros_limits_and_nan(kind, dtype):
    v = torch.tensor([0.0, -0.0, torch.nan, 1e30, -1e30, -torch.inf, torch.inf], dtype=dtype)
    if kind is nn.GELU:  # torch's own gives infinity or NaN, depending on how many numbers there are
        v = v[:-1]
    torch.testing.assert_close(compute(kind, v), kind()(v), equal_nan=True, rtol=1e-6, atol=1e-30)
