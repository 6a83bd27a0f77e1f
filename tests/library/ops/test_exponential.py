"""The kernels' own exponential, tanh and sigmoid against NumPy's."""

import numpy as np
import pytest
from numba import njit

from dendritree.ops.kernels.exponential import NEAR, exp, sigmoid, tanh

REALS = [np.float32, np.float64]


def grid(real, most):
    """Numbers of all sizes and both signs, and those beside the limit of the series."""
    sizes = np.concatenate([np.geomspace(1e-30, most, 20_000), np.linspace(0, 2, 20_001)])
    near = real(NEAR)
    edges = [near, np.nextafter(near, real(0)), np.nextafter(near, real(1))]
    return np.concatenate([sizes, -sizes, edges]).astype(real)


LOG_2_OFF = {np.float32: 2e-9, np.float64: 3e-17}
"""What the rounding of log 2 adds to the relative error, times the exponent of the result."""


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(
    ("ours", "exact"),
    [(exp, np.exp), (tanh, np.tanh), (sigmoid, lambda v: 1 / (1 + np.exp(-v)))],
    ids=["exp", "tanh", "sigmoid"],
)
def test_the_relative_error_is_a_few_units(ours, exact, real):
    v = grid(real, 80)
    actual = njit(lambda v: np.array([ours(each) for each in v]))(v)
    assert actual.dtype == real
    true = exact(v.astype(np.longdouble))
    most = 4 * np.finfo(real).eps + LOG_2_OFF[real] * np.abs(v / np.log(2))
    assert (np.abs(actual - true) <= most * np.abs(true)).all()


@pytest.mark.parametrize("real", REALS)
def test_limits_zeros_and_nan(real):
    v = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype=real)
    both = njit(lambda v: (np.array([tanh(each) for each in v]), np.array([sigmoid(each) for each in v])))(v)
    np.testing.assert_array_equal(both[0], np.tanh(v))
    np.testing.assert_array_equal(np.signbit(both[0][:2]), [False, True])
    np.testing.assert_array_equal(both[1], np.array([0.5, 0.5, 1, 0, np.nan, 1, 0], dtype=real))
