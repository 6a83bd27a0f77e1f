"""Ranks of models over many data sets: Friedman's test and Nemenyi's critical difference, following Demšar (2006).

J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006), 1-30. Needs the extra
`experiments` (scipy).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dendritree.errors import OptionError, import_extra

from .statistics import SIGNIFICANT

DIGITS = 12
"""Scores that differ only beyond this digit are ties: sums of the same numbers in another order."""


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of models, best first, and which of them do not differ significantly."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    """The mean rank of each model over the data sets; 1 is the best."""
    count: int
    """Number of data sets."""
    critical: float
    """Nemenyi's critical difference, q sqrt(k (k + 1) / (6 N)): smaller differences of mean ranks are insignificant."""
    chi_square: float
    """Friedman's statistic, without correction for ties."""
    f: float
    """Iman and Davenport's statistic from it, F-distributed with k - 1 and (k - 1)(N - 1) degrees of freedom."""
    p: float
    """The p value of the hypothesis that all models are equally good; NaN with fewer than two data sets."""

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First and last position of each group of models that do not differ significantly; none is inside another.

        >>> Ranking(("a", "b", "c"), (1.2, 1.9, 2.9), 10, 1.05, 9.0, 7.0, 0.01).groups
        ((0, 1), (1, 2))
        """
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            last = max(place for place, other in enumerate(self.ranks) if other - rank < self.critical)
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return tuple(found)


def rank_models(scores: Mapping[str, Sequence[float]], significance: float = SIGNIFICANT) -> Ranking:
    """The mean ranks of models by their scores on the same data sets (higher is better); ties share their ranks.

    Args:
        scores: the scores of each model by its name, one per data set, in the same order.
        significance: the level of Nemenyi's test.

    >>> found = rank_models({"a": [0.9, 0.8, 0.7], "b": [0.8, 0.7, 0.7], "c": [0.7, 0.9, 0.6]})
    >>> found.names, [round(rank, 3) for rank in found.ranks]
    (('a', 'b', 'c'), [1.5, 2.167, 2.333])
    """
    lengths = {len(values) for values in scores.values()}
    if len(scores) < 2 or len(lengths) != 1 or not min(lengths):
        got = ", ".join(f"{name} {len(values)}" for name, values in scores.items()) or "none"
        raise OptionError(f"two models or more must have a score on each of the same data sets: got {got}")
    table = np.array([list(values) for values in scores.values()], dtype=np.float64).T  # (data sets, models)
    if not np.isfinite(table).all():
        raise OptionError(f"scores must be finite to be ranked: got {table[~np.isfinite(table)][0]}")
    stats = import_extra("scipy.stats", extra="experiments")
    means = stats.rankdata(-table.round(DIGITS), axis=1).mean(0)
    count, models = table.shape
    chi_square = 12 * count / (models * (models + 1)) * (float((means**2).sum()) - models * (models + 1) ** 2 / 4)
    f, p = _iman_davenport(chi_square, count, models)
    order = sorted(range(models), key=lambda place: (means[place], place))
    names = list(scores)
    return Ranking(
        tuple(names[place] for place in order),
        tuple(float(means[place]) for place in order),
        count,
        critical_difference(models, count, significance),
        chi_square,
        f,
        p,
    )


def critical_difference(models: int, count: int, significance: float = SIGNIFICANT) -> float:
    """Nemenyi's critical difference of mean ranks for a number of models and data sets.

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    stats = import_extra("scipy.stats", extra="experiments")
    q = float(stats.studentized_range.ppf(1 - significance, models, math.inf)) / math.sqrt(2)
    return q * math.sqrt(models * (models + 1) / (6 * count))


def _iman_davenport(chi_square: float, count: int, models: int) -> tuple[float, float]:
    """The statistic and its p value."""
    if count < 2:
        return math.nan, math.nan
    rest = count * (models - 1) - chi_square
    if rest <= 1e-9 * count:  # the same order everywhere
        return math.inf, 0.0
    f = (count - 1) * chi_square / rest
    special = import_extra("scipy.special", extra="experiments")
    return f, float(special.fdtrc(models - 1, (models - 1) * (count - 1), f))
