"""The statistics against sums done by hand, brute force and integrals, and where there is nothing to compute with."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dendritree_lab.studies.engine.statistics import (
    Luck,
    Spread,
    bootstrap_mean,
    expected_best,
    hedges_g,
    holm,
    spread,
    welch,
)

# Sleep gained with two drugs, ten people each: Student's own example of 1908.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

samples = st.lists(st.integers(0, 100).map(lambda hundredths: hundredths / 100), min_size=2, max_size=12)


def is_nan(*numbers):
    return all(math.isnan(number) for number in numbers)


# ------------------------------------------------------------------------------------------------------------- spread


@pytest.mark.parametrize("value", [0.1, 0.77, 1 / 3, 1e-300, -7.7])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_equal_values_have_exactly_no_spread(value, count):
    assert spread([value] * count) == Spread(value, 0.0)


def test_one_value_has_a_mean_and_no_spread_and_none_has_neither():
    assert spread([0.3]).mean == 0.3
    assert is_nan(spread([0.3]).sd, *spread([]))


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, 1.0], [math.inf, math.inf], [math.inf, -math.inf]])
def test_what_diverged_has_no_spread(values):
    assert is_nan(spread(values).sd)
    assert not math.isfinite(spread(values).mean)


# -------------------------------------------------------------------------------------------------------------- welch


def test_welch_on_students_sleep_data():
    test = welch(DRUG_1, DRUG_2)
    # t = -1.8608, df = 17.776, p = 0.07939, interval -3.3654832 to 0.2054832: printed with this data in R's manual.
    assert test.statistic == pytest.approx(-1.8608, abs=5e-5)
    assert test.df == pytest.approx(17.776, abs=5e-4)
    assert test.p == pytest.approx(0.07939, abs=5e-6)
    assert (test.low, test.high) == pytest.approx((-3.3654832, 0.2054832), abs=5e-8)


@given(first=samples, second=samples)
def test_welch_is_scipys_test_and_the_interval_leaves_zero_out_exactly_when_p_is_small(first, second):
    test = welch(first, second)
    if np.ptp(first) + np.ptp(second):
        real = stats.ttest_ind(first, second, equal_var=False)
        ends = real.confidence_interval(0.95)
        ours = (test.statistic, test.df, test.p, test.low, test.high)
        assert ours == pytest.approx((real.statistic, real.df, real.pvalue, *ends), abs=1e-9)
    assume(abs(test.p - 0.05) > 1e-9)
    assert 0.0 <= test.p <= 1.0
    assert (test.low > 0.0 or test.high < 0.0) == (test.p < 0.05)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_without_any_spread_means_differ_for_certain_or_not_at_all(count):
    same = welch([0.1] * 3, [0.1] * count)  # whose rounded means are not equal
    assert (same.mean, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    other = welch([0.4] * 3, [0.1] * count)
    assert other.p == 0.0
    assert other.low == other.high == other.mean == pytest.approx(0.3)
    assert is_nan(*hedges_g([0.4] * 3, [0.1] * count), *hedges_g([0.1] * 3, [0.1] * count))


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [([0.5], [0.1, 0.2], 0.35), ([0.5], [0.1], 0.4), ([], [0.1, 0.2], None), ([math.nan, 1.0], [0.1, 0.2], None)],
)
def test_too_little_to_test_with_gives_nan_and_no_warning(first, second, difference):
    test = welch(first, second)
    assert is_nan(test.low, test.high, test.statistic, test.df, test.p, *hedges_g(first, second))
    assert is_nan(test.mean) if difference is None else test.mean == pytest.approx(difference)


# --------------------------------------------------------------------------------------------------------------- Holm


def test_holm_by_hand():
    # In order 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 = 0.02, 0.03, 0.06, 0.04; the last is raised to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)  # was not tested


@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_closed_test_of_bonferroni_rejects(family, level):
    """A hypothesis is rejected if every set that holds it has a p value below level over the set's size."""
    corrected = holm(family)
    assume(all(abs(p - level) > 1e-9 for p in corrected))
    places = range(len(family))
    subsets = [set(s) for size in range(1, len(family) + 1) for s in itertools.combinations(places, size)]
    for place in places:
        rejected = all(min(family[i] for i in s) * len(s) <= level for s in subsets if place in s)
        assert (corrected[place] <= level) == rejected


# ------------------------------------------------------------------------------------------------------- effect sizes


def test_hedges_g_by_hand():
    # Means 3 and 6, both variances 2.5, so d = -3 / sqrt(2.5); gamma(4) / (2 gamma(3.5)) = 6 / (2 x 3.3233509).
    effect = hedges_g([1, 2, 3, 4, 5], [4, 5, 6, 7, 8])
    g = -3 / math.sqrt(2.5) * 6 / (2 * 3.323350970447843)
    assert effect.g == pytest.approx(g)
    margin = 1.959963984540054 * math.sqrt(10 / 25 + g**2 / 20)
    assert (effect.low, effect.high) == pytest.approx((g - margin, g + margin))


# ---------------------------------------------------------------------------------------------------------- bootstrap


def test_the_bootstrap_agrees_with_all_resamples_there_are():
    values = [0.1, 0.4, 0.5, 0.9, 1.0]
    means = sorted(sum(drawn) / 5 for drawn in itertools.product(values, repeat=5))
    exact = [np.quantile(means, q) for q in (0.025, 0.975)]
    assert bootstrap_mean(values) == pytest.approx(exact, abs=0.02)


@given(samples)
def test_the_bootstrap_is_the_same_each_time_and_within_the_values(values):
    low, high = bootstrap_mean(values)
    assert (low, high) == bootstrap_mean(values)
    assert min(values) <= low <= high <= max(values)
    assert low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high


@pytest.mark.parametrize("values", [[], [0.5], [0.5, math.nan], [math.inf, 0.5]])
def test_the_bootstrap_of_too_little_is_nan(values):
    assert is_nan(*bootstrap_mean(values))


# -------------------------------------------------------------------------------------------------- luck of a search


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12), st.integers(0, 99))
def test_the_expected_best_is_that_of_many_searches(scores, seed):
    best = expected_best(scores)
    draws = np.random.default_rng(seed).choice(scores, (20_000, len(scores))).max(1)
    assert best.mean == pytest.approx(draws.mean(), abs=0.05)
    assert best.sd == pytest.approx(draws.std(), abs=0.05)


def test_scores_that_are_not_finite_count_as_the_worst():
    assert expected_best([math.nan, 0.2, 0.4]) == expected_best([0.2, 0.2, 0.4])
    assert math.isnan(expected_best([math.nan]).mean)
    assert expected_best([0.3]) == (0.3, 0.0)


def test_without_luck_a_sum_of_variances_is_welchs_test():
    plain, summed = welch(DRUG_1, DRUG_2), welch(DRUG_1, DRUG_2, [Luck(1e-12, 5)])
    for name in ("mean", "low", "high", "p", "statistic", "df"):
        assert getattr(summed, name) == pytest.approx(getattr(plain, name))


@pytest.mark.parametrize("sd", [0.3, 1.0])
def test_a_test_with_luck_rejects_true_hypotheses_as_often_as_it_says(sd):
    random = np.random.default_rng(0)
    tries = 1500
    rejected = 0
    for _ in range(tries):  # the mean itself is drawn, with that noise, on either side
        sides = [random.normal(0, sd) + random.normal(0, 0.5, 5) for _ in range(2)]
        estimated = [Luck(float(np.std(random.normal(0, sd, 16), ddof=1)), 15) for _ in range(2)]
        rejected += welch(*sides, estimated).p < 0.05
    assert rejected / tries == pytest.approx(0.05, abs=0.02)
