"""Statistics of a few trials: Welch's test, Holm's correction, Hedges' g, the bootstrap. Numbers in, numbers out.

What cannot be known from the numbers given, as a spread from one of them, is NaN; there is never a warning.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import import_extra

__all__ = [
    "CONFIDENCE",
    "SIGNIFICANT",
    "EffectSize",
    "Spread",
    "Welch",
    "bootstrap_mean",
    "hedges_g",
    "holm",
    "spread",
    "welch",
]

CONFIDENCE = 0.95
"""Of every interval here."""
SIGNIFICANT = 0.05
"""A corrected p below this decides a comparison."""
RESAMPLES = 10_000
BOOTSTRAP_SEED = 20_260
NORMAL_QUANTILE = 1.959963984540054  # of (1 + CONFIDENCE) / 2


class Spread(NamedTuple):
    """Mean and sample standard deviation (n - 1)."""

    mean: float
    sd: float


class Welch(NamedTuple):
    """Welch's t test of two means, two-sided, and the confidence interval of their difference."""

    difference: float
    low: float
    high: float
    statistic: float
    df: float
    p: float


class EffectSize(NamedTuple):
    """A difference of means in units of the pooled standard deviation."""

    g: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation; equal values give exactly their value and 0.

    >>> spread([0.25, 0.5, 0.75])
    Spread(mean=0.5, sd=0.25)
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return Spread(math.nan, math.nan)
    if (array == array[0]).all():  # a rounded mean of equal values may miss them, and a spread of 1e-17 is a lie
        return Spread(float(array[0]), 0.0 if array.size > 1 and np.isfinite(array[0]) else math.nan)
    if not np.isfinite(array).all():
        with np.errstate(invalid="ignore"):
            return Spread(float(array.sum() / array.size), math.nan)
    mean = math.fsum(array) / array.size
    return Spread(mean, math.sqrt(math.fsum((array - mean) ** 2) / (array.size - 1)))


def welch(first: Sequence[float], second: Sequence[float]) -> Welch:
    """Compare the means of two samples that need not have one variance.

    Two samples without any spread differ for certain (p = 0) or not at all (p = 1).

    >>> result = welch([0.80, 0.82, 0.84], [0.70, 0.74, 0.78])
    >>> round(result.difference, 3), round(result.df, 2), round(result.p, 4)
    (0.08, 2.94, 0.0548)
    """
    special = import_extra("scipy.special", extra="experiments")
    (mean_1, sd_1), (mean_2, sd_2) = spread(first), spread(second)
    difference = mean_1 - mean_2 if math.isfinite(mean_1) and math.isfinite(mean_2) else math.nan
    if math.isnan(sd_1) or math.isnan(sd_2):
        return Welch(difference, *[math.nan] * 5)
    square_1, square_2 = sd_1**2 / len(first), sd_2**2 / len(second)
    error = math.sqrt(square_1 + square_2)
    if error == 0.0:
        statistic = math.copysign(math.inf, difference) if difference else 0.0
        return Welch(difference, difference, difference, statistic, math.nan, 0.0 if difference else 1.0)
    # Shares of the error, not its fourth powers, which underflow for tiny spreads.
    share_1, share_2 = square_1 / (square_1 + square_2), square_2 / (square_1 + square_2)
    df = 1.0 / (share_1**2 / (len(first) - 1) + share_2**2 / (len(second) - 1))
    statistic = difference / error
    margin = error * float(special.stdtrit(df, (1.0 + CONFIDENCE) / 2))
    p = min(1.0, 2.0 * float(special.stdtr(df, -abs(statistic))))
    return Welch(difference, difference - margin, difference + margin, statistic, df, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of a family of tests, in the order given. NaN is no test and stays NaN.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = [math.nan] * len(p_values)
    tests = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    running = 0.0
    for rank, (p, place) in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - rank) * p))
        corrected[place] = running
    return corrected


def hedges_g(first: Sequence[float], second: Sequence[float]) -> EffectSize:
    """Hedges' g: the difference of means over the pooled sd, freed of its small-sample bias.

    The factor is the exact one, `gamma(m / 2) / (sqrt(m / 2) gamma((m - 1) / 2))` with m = n1 + n2 - 2; the interval
    is the normal one with variance `(n1 + n2) / (n1 n2) + g^2 / (2 (n1 + n2))`. NaN where there is no spread.

    >>> effect = hedges_g([0.80, 0.82, 0.84], [0.70, 0.74, 0.78])
    >>> round(effect.g, 3), round(effect.low, 3), round(effect.high, 3)
    (2.019, 0.052, 3.985)
    """
    (mean_1, sd_1), (mean_2, sd_2) = spread(first), spread(second)
    n_1, n_2 = len(first), len(second)
    if math.isnan(sd_1) or math.isnan(sd_2) or sd_1 == sd_2 == 0.0:
        return EffectSize(math.nan, math.nan, math.nan)
    df = n_1 + n_2 - 2
    pooled = math.sqrt(((n_1 - 1) * sd_1**2 + (n_2 - 1) * sd_2**2) / df)
    unbias = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    g = unbias * (mean_1 - mean_2) / pooled if pooled else math.nan
    margin = NORMAL_QUANTILE * math.sqrt((n_1 + n_2) / (n_1 * n_2) + g**2 / (2 * (n_1 + n_2)))
    return EffectSize(g, g - margin, g + margin)


def bootstrap_mean(values: Sequence[float]) -> tuple[float, float]:
    """The percentile bootstrap interval of a mean, the same in every call.

    >>> low, high = bootstrap_mean([0.70, 0.74, 0.75, 0.77, 0.79, 0.80])
    >>> bool(0.70 < low < 0.7583 < high < 0.80)
    True
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return math.nan, math.nan
    means = array[_resamples(array.size)].mean(axis=1)
    tail = (1.0 - CONFIDENCE) / 2
    # A rounded mean of equal values may fall a hair outside of them.
    low, high = np.clip(np.quantile(means, [tail, 1.0 - tail]), array.min(), array.max())
    return float(low), float(high)


@functools.lru_cache(maxsize=8)
def _resamples(size: int) -> NDArray[np.int64]:
    """Which values each resample takes: (resamples, size). Kept, because most rows have the same number of trials."""
    return np.random.default_rng(BOOTSTRAP_SEED).integers(0, size, (RESAMPLES, size))


@dataclass(frozen=True)
class Difference:
    """How much better trees are than a control, in the metric's own unit, with its interval."""

    mean: float
    low: float
    high: float

    @property
    def state(self) -> str:
        """`ahead`, `behind`, or `undecided` where the interval holds 0.

        >>> Difference(0.02, 0.01, 0.03).state, Difference(0.02, -0.01, 0.05).state
        ('ahead', 'undecided')
        """
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "undecided"


def paired_difference(
    first: Sequence[float], second: Sequence[float], test_to_train: float, *, most: float = math.inf
) -> Difference:
    """Mean of first minus second over splits, with its 95 % interval, cut off at the `most` that two may differ.

    Splits share training rows, so their scores are no independent draws: the variance is corrected as Nadeau and
    Bengio (2003) do, s² (1 / n + test rows / training rows).

    >>> paired_difference([0.9, 0.8], [0.8, 0.7], 0.5).mean
    0.1
    """
    differences = np.subtract(first, second)
    count = len(differences)
    mean = float(differences.mean().round(12))
    if count < 2:
        return Difference(mean, -most, most)
    special = import_extra("scipy.special", extra="tables")
    deviation = math.sqrt(float(differences.var(ddof=1)) * (1 / count + test_to_train))
    half = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * deviation
    return Difference(mean, max(mean - half, -most), min(mean + half, most))
