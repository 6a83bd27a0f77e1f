"""Efficiency factors and gains, against computations of another kind."""

import math

import numpy as np
import pytest
from compare_cases import made_trial
from comparison_cases import around, made_up_cell, made_up_run
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dendritree_lab.studies.engine.configuration import Configuration
from dendritree_lab.studies.engine.statistics import Luck, Spread, expected_best, welch
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import ComparisonCell, ComparisonPlan, summarize
from dendritree_lab.studies.fair.comparison_results import CellResult, efficiency

DIGITS, HOUSES = Task.parse("digits"), Task.parse("california-housing")


def result(scores, parameters, family="dense", task=DIGITS):
    cell = ComparisonCell(task, parameters, family)
    return CellResult(cell, Configuration("none", {}, 0.1), parameters, None, tuple(scores), (), 1.0)


# --------------------------------------------------------------------------------------------------------- efficiency


@given(
    st.lists(st.integers(100, 200_000), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(0.1, 0.99), min_size=6, max_size=6),
    st.floats(0.1, 0.99),
    st.integers(100, 50_000),
)
def test_the_factor_is_where_the_dense_curve_reaches_the_score(sizes, means, target, parameters):
    sizes = sorted(sizes)
    means = means[: len(sizes)]
    dense = [result([mean], size) for size, mean in zip(sizes, means, strict=True)]
    found = efficiency(result([target], parameters, "tree"), dense[::-1])  # in any order
    if target > max(means):
        assert found.bounds[0] == ">"
        assert found.factor == pytest.approx(sizes[-1] / parameters)
        return
    assert found.bounds[0] != ">"
    if target < means[0]:
        assert found.bounds[0] == "<"
        assert found.factor == pytest.approx(sizes[0] / parameters)
        return
    assert found.bounds[0] == ""
    # At the size found the line through the sizes is at the score, and just before it is not yet
    best = np.maximum.accumulate(means)
    at = math.log(found.factor * parameters)
    assert np.interp(at, np.log(sizes), best) == pytest.approx(target, abs=1e-9)
    assert np.interp(at - 1e-6, np.log(sizes), best) <= target


def test_an_rmse_is_better_when_it_is_less():
    dense = [result([0.6, 0.6], 1000, task=HOUSES), result([0.5, 0.5], 4000, task=HOUSES)]
    middle = efficiency(result([0.55, 0.55], 1000, "tree", HOUSES), dense)
    assert middle.factor == pytest.approx(2.0)  # half of the way from 1,000 to 4,000 is twice 1,000
    assert efficiency(result([0.49, 0.49], 1000, "tree", HOUSES), dense).bounds == (">", ">", ">")
    assert efficiency(result([0.61, 0.61], 1000, "tree", HOUSES), dense).bounds == ("<", "<", "<")


def test_the_interval_is_that_of_resampled_seeds():
    random = np.random.default_rng(7)
    ours = result(0.95 + 0.003 * random.standard_normal(5), 2000, "tree")
    dense = [result(m + 0.003 * random.standard_normal(5), s) for s, m in ((2000, 0.92), (8000, 0.95), (32_000, 0.97))]
    found = efficiency(ours, dense)
    factors = []
    for _ in range(4000):  # another generator, another way to interpolate
        target = random.choice(ours.scores, 5).mean()
        curve = np.maximum.accumulate([random.choice(r.scores, 5).mean() for r in dense])
        factors.append(math.exp(np.interp(target, curve, np.log([r.parameters for r in dense]))) / 2000)
    low, high = np.quantile(factors, [0.025, 0.975])
    assert found.low == pytest.approx(low, rel=0.05)
    assert found.high == pytest.approx(high, rel=0.05)
    assert found.low < found.factor < found.high


# -------------------------------------------------------------------------------------------------------------- gains

SCORES = st.lists(st.floats(0.1, 0.9), min_size=2, max_size=5)


@given(SCORES, SCORES, SCORES)
def test_gains_are_welchs_tests_of_the_scores(tree, sparse, dense):
    assume(all(np.ptp(scores) > 1e-3 for scores in (tree, sparse, dense)))
    records = made_up_cell("digits", "tree", 1000, tree)
    records += made_up_cell("digits", "sparse", 1000, sparse) + made_up_cell("digits", "dense", 1000, dense)
    gains = {gain.kind: gain for gain in summarize(records).gains}
    assert list(gains) == ["tree", "wiring", "both"]
    for kind, first, second in (("tree", tree, sparse), ("wiring", sparse, dense), ("both", tree, dense)):
        real = stats.ttest_ind(first, second, equal_var=False)
        ends = real.confidence_interval(0.95)
        assert (
            gains[kind].test.p == gains[kind].raw_p == pytest.approx(real.pvalue, abs=1e-9)
        )  # one test of a kind has nothing to correct
        assert gains[kind].unit == "points"
        expected = [100 * (np.mean(first) - np.mean(second)), 100 * ends.low, 100 * ends.high]
        found = gains[kind].in_units
        assert (found.mean, found.low, found.high) == pytest.approx(expected, abs=1e-7)
    together = gains["tree"].test.mean + gains["wiring"].test.mean
    assert together == pytest.approx(gains["both"].test.mean, abs=1e-12)


def test_of_an_rmse_less_is_ahead_and_the_unit_is_percent_of_the_controls():
    records = made_up_cell("california-housing", "tree", 1000, [0.47, 0.49, 0.48])
    records += made_up_cell("california-housing", "sparse", 1000, [0.50, 0.51, 0.49])
    (gain,) = summarize(records).gains
    assert (gain.kind, gain.unit) == ("tree", "%")
    assert gain.in_units.mean == pytest.approx(4.0)
    assert gain.in_units.low < 4 < gain.in_units.high
    assert gain.test.p == pytest.approx(stats.ttest_ind([0.50, 0.51, 0.49], [0.47, 0.49, 0.48], equal_var=False).pvalue)


def test_p_values_are_corrected_within_their_kind():
    records = []
    for budget, lead in ((1000, 0.01), (2000, 0.004), (4000, 0.001)):
        records += made_up_cell("digits", "tree", budget, around(0.9 + lead, 0.003))
        records += made_up_cell("digits", "sparse", budget, around(0.9, 0.003))
    raw = [stats.ttest_ind(around(0.9 + lead, 0.003), around(0.9, 0.003)).pvalue for lead in (0.01, 0.004, 0.001)]
    expected = [3 * raw[0], 2 * raw[1], max(2 * raw[1], raw[2])]
    assert [gain.test.p for gain in summarize(records).gains] == pytest.approx([min(1, p) for p in expected])


# ------------------------------------------------------------------------------------------------------------ records


def test_results_are_of_fresh_seeds_and_in_reading_order():
    found = summarize(made_up_run(("california-housing", "mnist:128", "mnist-pairs"), seeds=3))
    assert [task.name for task in found.tasks] == ["mnist:128", "mnist-pairs", "california-housing"]
    families = [r.cell.family for r in found.cells if r.cell.budget == 9000 and r.cell.task.name == "mnist-pairs"]
    assert families == ["tree", "sparse", "dense"]
    (linear,) = found.of(Task.parse("mnist:128"), "linear")
    assert linear.spread == pytest.approx(Spread(0.768, 0.08 * (1 - 0.768) ** 1.2))
    assert (len(linear.searched), linear.parameters, linear.multiply_adds) == (2, 7850, 7840)
    assert len(linear.scores) == 3


def test_what_was_not_measured_or_diverged_has_no_score_and_no_factor():
    records = [r for size in (1000, 2000) for r in made_up_cell("california-housing", "dense", size, around(0.5))]
    records += made_up_cell("california-housing", "dense", 4000, [0.4, math.nan])
    records += made_up_cell("california-housing", "tree", 1000, [math.nan, 0.5])
    records += made_up_cell("california-housing", "sparse", 1000, [math.inf, 0.5])
    found = summarize(records)
    assert math.isnan(found.of(HOUSES, "dense")[-1].spread.mean)
    assert found.efficiencies == ()
    assert [gain.kind for gain in found.gains] == ["tree", "wiring", "both"]
    assert all(math.isnan(gain.test.mean) and math.isnan(gain.test.p) for gain in found.gains)


def test_the_luck_of_a_search_is_in_the_test_of_a_gain():
    records = made_up_cell("digits", "tree", 1000, around(0.92, 0.003))
    records += made_up_cell("digits", "sparse", 1000, around(0.90, 0.003))
    searches = [0.80, 0.85, 0.91]  # besides the two of 0.5 that every made-up cell has
    plan = ComparisonPlan.make(["digits"], budgets=[1000], families=["tree"], trials=3)
    found = [
        made_trial(job, val_loss=[1.0], val_acc=[score])
        for job, score in zip(plan.searches(plan.cells[0]), searches, strict=True)
    ]
    (plain,), (lucky,) = summarize(records).gains, summarize(records + found).gains
    assert lucky.test.mean == plain.test.mean
    wanted = welch(around(0.92, 0.003), around(0.90, 0.003), [Luck(expected_best([0.5, 0.5, *searches]).sd, 4)])
    assert (lucky.raw_p, lucky.test.low) == pytest.approx((wanted.p, wanted.low))
    assert lucky.raw_p > plain.raw_p
