"""Columns scaled to mean 0 and standard deviation 1, from all rows at once or a few at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLIP = 5.0
"""Standardized inputs are clipped here, so that one absurd value does not dominate its column."""

Array = NDArray[np.float64]


@dataclass
class Standardizer:
    """Weighted mean and standard deviation of columns.

    >>> numbers = Standardizer.of(np.array([[1.0], [3.0]]))
    >>> numbers.apply(np.array([[3.0], [900.0]]), clip=CLIP).tolist()
    [[1.0], [5.0]]
    """

    total: float
    """Sum of the weights of all rows seen."""
    mean: Array
    squares: Array
    """Weighted sums of squared distances from the mean."""

    @classmethod
    def of(cls, columns: Array, weight: Array | None = None) -> Standardizer:
        """The scaling of some rows."""
        weight = np.ones(len(columns)) if weight is None else weight
        total = float(weight.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.sum(columns * (weight / total)[:, None], axis=0)
            squares = np.sum(weight[:, None] * (columns - mean) ** 2, axis=0)
        return cls(total, mean, squares)

    def updated(self, columns: Array, weight: Array | None = None) -> Standardizer:
        """The scaling of the rows seen before and these (Chan, Golub and LeVeque's pairwise update)."""
        more = Standardizer.of(columns, weight)
        total = self.total + more.total
        with np.errstate(over="ignore", invalid="ignore"):
            gap, share = more.mean - self.mean, more.total / total
            mean = np.where(np.isfinite(gap), self.mean + gap * share, self.mean * (1 - share) + more.mean * share)
            squares = self.squares + more.squares + gap**2 * (self.total * more.total / total)
        return Standardizer(total, mean, squares)

    @property
    def scale(self) -> Array:
        """Standard deviations; 1 for a column that is constant up to rounding errors or beyond the range of floats."""
        scale = np.sqrt(self.squares / self.total)
        smallest = 10 * np.finfo(np.float64).eps * np.abs(self.mean)
        return np.where(np.isfinite(scale) & (scale > smallest), scale, 1.0)

    def apply(self, columns: Array, clip: float = np.inf) -> Array:
        """Standardize columns."""
        with np.errstate(over="ignore"):  # a distance beyond the range of floats is infinite, and clipped
            return np.clip((columns - self.mean) / self.scale, -clip, clip)

    def undo(self, standardized: Array) -> Array:
        """The inverse of `apply` without a clip."""
        return standardized * self.scale + self.mean
