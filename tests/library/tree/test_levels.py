"""Rows of one tree at every level, found with integers alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import ShapeError
from dendritree.tree.levels import level_sizes


@pytest.mark.parametrize(
    ("branching", "fan_in", "sizes"),
    [
        (5, 125, [125, 25, 5, 1]),
        (2, 2**20, [2**k for k in range(20, -1, -1)]),
        (7, 7, [7, 1]),
        (32, 1024, [1024, 32, 1]),
        ([16, 8], 128, [128, 8, 1]),
        ((2, 3, 4), 24, [24, 12, 4, 1]),
    ],
)
def test_balanced_levels_are_found_with_integers(branching, fan_in, sizes):
    assert level_sizes(branching, fan_in=fan_in) == sizes
    assert level_sizes(branching, depth=len(sizes) - 1) == sizes
    assert level_sizes(branching, fan_in=fan_in, depth=len(sizes) - 1) == sizes
    assert level_sizes(branching, fan_in=fan_in, ragged=True) == sizes


@given(branching=st.integers(2, 40), depth=st.integers(1, 12))
def test_every_power_is_recognised_and_its_neighbours_are_not(branching, depth):
    fan_in = branching**depth
    assert len(level_sizes(branching, fan_in=fan_in)) == depth + 1
    if fan_in > 2:
        with pytest.raises(ShapeError, match=rf"branching \*\* depth: got fan_in {fan_in - 1}, branching {branching};"):
            level_sizes(branching, fan_in=fan_in - 1)
    with pytest.raises(ShapeError, match=rf"branching \*\* depth: got fan_in {fan_in + 1}, branching {branching};"):
        level_sizes(branching, fan_in=fan_in + 1)
