"""Standardized columns, against numpy's own mean and deviation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree.sklearn.scaling import Standardizer


def columns(rows, seed=0):
    return np.random.default_rng(seed).normal([1.0, -20.0, 3e6], [2.0, 0.1, 1e5], (rows, 3))


def test_columns_get_mean_0_and_deviation_1():
    x = columns(50)
    np.testing.assert_allclose(Standardizer.of(x).apply(x), (x - x.mean(0)) / x.std(0), rtol=1e-9)


def test_a_weight_is_that_many_rows():
    x, times = columns(6), np.array([1, 2, 3, 1, 5, 2])
    weighted, repeated = Standardizer.of(x, times.astype(float)), Standardizer.of(np.repeat(x, times, 0))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.scale, repeated.scale)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_rows_a_few_at_a_time_give_what_all_at_once_give(sizes):
    x = columns(sum(sizes), seed=len(sizes))
    first, *rest = np.split(x, np.cumsum(sizes)[:-1])
    found = Standardizer.of(first)
    for part in rest:
        found = found.updated(part)
    np.testing.assert_allclose(found.mean, x.mean(0))
    np.testing.assert_allclose(found.squares, ((x - x.mean(0)) ** 2).sum(0), rtol=1e-6, atol=1e-6)


def test_a_constant_column_is_0_and_not_rounding_errors():
    x = np.full((1000, 1), 0.1 + 1e9)
    assert np.abs(Standardizer.of(x).apply(x)).max() < 1e-3


@pytest.mark.parametrize("value", [1e200, 1e308])
def test_a_column_beyond_the_range_of_floats_stays_finite(value):
    x = np.array([[value], [0.0], [-value]])
    for few_at_a_time in (Standardizer.of(x), Standardizer.of(x[:1]).updated(x[1:]), Standardizer.of(x).updated(-x)):
        assert np.isfinite(few_at_a_time.mean).all()
        assert np.isfinite(few_at_a_time.apply(1.7 * x, clip=5.0)).all()


def test_undo_gives_back_what_was_given():
    x = columns(9)
    scaling = Standardizer.of(x)
    np.testing.assert_allclose(scaling.undo(scaling.apply(x)), x)
