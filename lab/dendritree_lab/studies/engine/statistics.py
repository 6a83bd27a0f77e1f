"""Statistics and verdicts of a few trials: numbers in, numbers out.

Anything that cannot be determined, such as the spread of a single number, is NaN; there are no warnings.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
"""Confidence level of all intervals."""
SIGNIFICANT = 0.05
"""A corrected p value below this decides a comparison."""
RESAMPLES = 10_000
BOOTSTRAP_SEED = 20_260


class Spread(NamedTuple):
    """Mean and sample standard deviation (n - 1)."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Difference:
    """A difference of two means, its confidence interval, and the p value of its test; NaN if unknown."""

    mean: float
    low: float
    high: float
    p: float = math.nan
    """Corrected for the other tests of its family by `corrected`."""
    statistic: float = math.nan
    df: float = math.nan

    @property
    def state(self) -> str | None:
        """The verdict: `ahead`, `behind`, or `undecided`; None if there are too few trials.

        A p value decides if there is one, otherwise whether the interval contains 0.

        >>> Difference(0.02, 0.01, 0.03).state, Difference(0.02, -0.01, 0.05).state, Difference(-1, -2, 1, p=0.01).state
        ('ahead', 'undecided', 'behind')
        """
        if math.isnan(self.p):
            if math.isnan(self.low):
                return None
            return "ahead" if self.low > 0 else "behind" if self.high < 0 else "undecided"
        if self.p >= SIGNIFICANT:
            return "undecided"
        return "ahead" if self.mean > 0 else "behind"

    def scaled(self, factor: float) -> Difference:
        """The same difference in another unit."""
        return replace(self, mean=self.mean * factor, low=self.low * factor, high=self.high * factor)


class EffectSize(NamedTuple):
    """A difference of means in units of the pooled standard deviation, and its confidence interval."""

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
    if (array == array[0]).all():  # rounding may shift the mean of equal values and give a spread of 1e-17
        return Spread(float(array[0]), 0.0 if array.size > 1 and np.isfinite(array[0]) else math.nan)
    if not np.isfinite(array).all():
        with np.errstate(invalid="ignore"):
            return Spread(float(array.sum() / array.size), math.nan)
    mean = math.fsum(array) / array.size
    with np.errstate(over="ignore"):  # squares of huge numbers overflow
        squares = (array - mean) ** 2
    return Spread(mean, math.sqrt(math.fsum(squares) / (array.size - 1)))


def expected_best(scores: Sequence[float]) -> Spread:
    """Mean and standard deviation of the best score of a search of the same size, estimated from its scores.

    Dodge et al. (2019), "Show your work": the best of n draws from n scores is at most the i-th in ascending order with
    probability (i / n)^n. The standard deviation measures the noise of the search. Scores that are not finite count as
    the worst.

    >>> best = expected_best([0.1, 0.2, 0.3])
    >>> round(best.mean, 4), round(best.sd, 4)
    (0.2667, 0.0544)
    """
    array = np.sort(np.asarray(scores, dtype=np.float64))
    finite = array[np.isfinite(array)]
    if not finite.size:
        return Spread(math.nan, math.nan)
    array = np.sort(np.where(np.isfinite(array), array, finite[0]))
    steps = (np.arange(len(array) + 1) / len(array)) ** len(array)
    share = np.diff(steps)
    mean = float(share @ array)
    return Spread(mean, math.sqrt(float(share @ (array - mean) ** 2)))


class Luck(NamedTuple):
    """A source of uncertainty of a mean besides the spread of its sample, such as the noise of a search."""

    sd: float
    df: float
    """Degrees of freedom of the estimated standard deviation."""


def welch(first: Sequence[float], second: Sequence[float], luck: Sequence[Luck] = ()) -> Difference:
    """Welch's two-sided t test: compare the means of two samples whose variances may differ.

    Two samples without any spread differ for certain (p = 0) or not at all (p = 1).

    Args:
        first, second: the samples.
        luck: further uncertainty of either mean, independent of everything else; its variances are added to those of
            the means, with degrees of freedom after Satterthwaite.

    >>> result = welch([0.80, 0.82, 0.84], [0.70, 0.74, 0.78])
    >>> round(result.mean, 3), round(result.df, 2), round(result.p, 4)
    (0.08, 2.94, 0.0548)
    """
    (mean_1, sd_1), (mean_2, sd_2) = spread(first), spread(second)
    mean = mean_1 - mean_2 if math.isfinite(mean_1) and math.isfinite(mean_2) else math.nan
    if math.isnan(sd_1) or math.isnan(sd_2):
        return Difference(mean, math.nan, math.nan)
    if any(each.sd > 0 for each in luck):
        spreads = [(sd_1**2 / len(first), len(first) - 1), (sd_2**2 / len(second), len(second) - 1)]
        return t_test(mean, [*spreads, *((each.sd**2, each.df) for each in luck)])
    if sd_1 == sd_2 == 0.0:
        statistic = math.copysign(math.inf, mean) if mean else 0.0
        return Difference(mean, mean, mean, 0.0 if mean else 1.0, statistic)
    from scipy import stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # warnings about nearly equal values
        test = stats.ttest_ind(first, second, equal_var=False)
        low, high = test.confidence_interval(CONFIDENCE)
    return Difference(mean, float(low), float(high), float(test.pvalue), float(test.statistic), float(test.df))


def t_test(mean: float, variances: Sequence[tuple[float, float]]) -> Difference:
    """A difference whose variance is a sum of estimates, each with its degrees of freedom."""
    from scipy import special

    total = sum(variance for variance, _ in variances)
    df = total**2 / sum(variance**2 / df for variance, df in variances if variance)
    statistic, half = mean / math.sqrt(total), float(special.stdtrit(df, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
    p = 2 * float(special.stdtr(df, -abs(statistic)))
    return Difference(mean, mean - half, mean + half, p, statistic, df)


def one_more(values: Sequence[float], value: float) -> Difference:
    """Student's test of whether a value could belong to a sample: the mean of the sample minus the value.

    >>> round(one_more([0.4, 0.5, 0.6], 0.5).p, 3), round(one_more([0.4, 0.5, 0.6], 1.0).p, 3)
    (1.0, 0.049)
    """
    mean, sd = spread(values)
    difference = mean - value
    if sd == 0.0:
        return Difference(difference, difference, difference, 0.0 if difference else 1.0)
    return t_test(difference, [(sd**2 * (1 + 1 / len(values)), len(values) - 1)])


def paired_difference(
    first: Sequence[float], second: Sequence[float], test_to_train: float, *, most: float = math.inf
) -> Difference:
    """Mean of first minus second over splits, with its interval, clipped at `most`, the largest possible difference.

    Splits share training rows, so their scores are not independent: the variance is corrected after Nadeau and Bengio
    (2003), s² (1 / n + test rows / training rows).

    >>> paired_difference([0.9, 0.8], [0.8, 0.7], 0.5).mean
    0.1
    """
    mean, deviation = paired_mean(first, second, test_to_train)
    count = len(first)
    if count < 2:
        return Difference(mean, -most, most)
    from scipy import special

    half = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * deviation
    return Difference(mean, max(mean - half, -most), min(mean + half, most))


def paired_mean(first: Sequence[float], second: Sequence[float], test_to_train: float) -> tuple[float, float]:
    """Mean of first minus second over splits, and its standard error; NaN for one split.

    The error is Nadeau and Bengio's: s sqrt(1 / n + test rows / training rows), s being the standard deviation of the n
    differences.

    >>> mean, error = paired_mean([0.9, 0.8, 0.7], [0.8, 0.8, 0.6], 0.5)
    >>> round(mean, 4), round(error, 4)
    (0.0667, 0.0527)
    """
    differences = np.subtract(first, second)
    count = len(differences)
    mean = float(differences.mean().round(12))
    if count < 2:
        return mean, math.nan
    return mean, math.sqrt(float(differences.var(ddof=1)) * (1 / count + test_to_train))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of a family of tests, in the given order. NaN is not a test and stays NaN.

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


def corrected(tests: Iterable[Difference]) -> list[Difference]:
    """The tests of one family with their p values corrected for each other by Holm's method."""
    family = list(tests)
    return [replace(test, p=p) for test, p in zip(family, holm([test.p for test in family]), strict=True)]


def hedges_g(first: Sequence[float], second: Sequence[float]) -> EffectSize:
    """Hedges' g: the difference of means over the pooled sd, corrected for small-sample bias.

    The correction factor is the exact one, `gamma(m / 2) / (sqrt(m / 2) gamma((m - 1) / 2))` with m = n1 + n2 - 2; the
    interval is normal with variance `(n1 + n2) / (n1 n2) + g^2 / (2 (n1 + n2))`. NaN if there is no spread.

    >>> effect = hedges_g([0.80, 0.82, 0.84], [0.70, 0.74, 0.78])
    >>> round(effect.g, 3), round(effect.low, 3), round(effect.high, 3)
    (2.019, 0.052, 3.985)
    """
    from scipy import special

    (mean_1, sd_1), (mean_2, sd_2) = spread(first), spread(second)
    n_1, n_2 = len(first), len(second)
    if math.isnan(sd_1) or math.isnan(sd_2) or sd_1 == sd_2 == 0.0:
        return EffectSize(math.nan, math.nan, math.nan)
    df = n_1 + n_2 - 2
    pooled = math.sqrt(((n_1 - 1) * sd_1**2 + (n_2 - 1) * sd_2**2) / df)
    unbias = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    g = unbias * (mean_1 - mean_2) / pooled if pooled else math.nan
    margin = float(special.ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(
        (n_1 + n_2) / (n_1 * n_2) + g**2 / (2 * (n_1 + n_2))
    )
    return EffectSize(g, g - margin, g + margin)


def bootstrap_mean(values: Sequence[float]) -> tuple[float, float]:
    """The percentile bootstrap interval of a mean; deterministic.

    >>> low, high = bootstrap_mean([0.70, 0.74, 0.75, 0.77, 0.79, 0.80])
    >>> bool(0.70 < low < 0.7583 < high < 0.80)
    True
    """
    from scipy import stats

    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return math.nan, math.nan
    options = {"n_resamples": RESAMPLES, "confidence_level": CONFIDENCE, "rng": np.random.default_rng(BOOTSTRAP_SEED)}
    with np.errstate(over="ignore"):
        result = stats.bootstrap((array,), np.mean, method="percentile", **options)
    # Rounding may put the mean of equal values slightly outside their range.
    low, high = np.clip(result.confidence_interval, array.min(), array.max())
    return float(low), float(high)


def show_p(p: float) -> str:
    """Format a p value for a sentence.

    >>> show_p(0.0002), show_p(0.0421), show_p(math.nan)
    ('p < 0.001', 'p = 0.042', 'too few trials')
    """
    if math.isnan(p):
        return "too few trials"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def resampled_means(values: Sequence[float], count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Means of `count` resamples of the values."""
    array = np.asarray(values)
    return array[random.integers(0, len(array), (count, len(array)))].mean(1)  # type: ignore[no-any-return]
