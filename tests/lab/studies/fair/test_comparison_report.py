"""The report of a comparison as data: what it says of whole runs, of parts, and of runs that went wrong."""

import io
import math

import pytest
from comparison_cases import CONFIG, around, made_up_cell, made_up_run
from rich.console import Console

from dendritree_lab.report.layout import show
from dendritree_lab.studies.fair import ComparisonPlan, print_comparison, summarize
from dendritree_lab.studies.fair.comparison_report import comparison_report
from dendritree_lab.studies.fair.comparison_tables import coverage
from dendritree_lab.studies.fair.families import OURS

MINUS = "\N{MINUS SIGN}"


def report_of(records, plan=None):
    return comparison_report(summarize(records), records, CONFIG, {"torch": "2.6.0"}, plan=plan)


def values(report, section, *names):
    """The columns with these names, a tuple per row."""
    table = report.section(section)
    places = [[column.name for column in table.columns].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in table.rows]


def printed(records, width=80):
    file = io.StringIO()
    print_comparison(summarize(records), Console(file=file, width=width))
    return file.getvalue()


def three(task, budget, tree, sparse, dense, seeds=5):
    """Trees, sparse and dense models at one budget."""
    return [
        record
        for family, mean in (("tree", tree), ("sparse", sparse), ("dense", dense))
        for record in made_up_cell(task, family, budget, around(mean, seeds=seeds))
    ]


@pytest.fixture(scope="module")
def whole():
    records = made_up_run(("mnist", "mnist:128", "california-housing"))
    return records, report_of(records)


# ------------------------------------------------------------------------------------------------------------- tables


def test_the_overview_has_a_row_a_budget_with_its_gains(whole):
    _, report = whole
    names = ("task", "budget", "tree", "sparse", "dense", "linear", "tree_gain", "wiring_gain")
    rows = {row[:2]: row[2:] for row in values(report, "overview", *names)}
    assert rows["mnist", 9000] == pytest.approx((0.981, 0.982, 0.939, 0.921, -0.1, 4.3))
    assert rows["mnist", 144_000][:2] == (None, None)
    assert rows["mnist", 144_000][4:] == (None, None)
    percents = (100 * (0.551 - 0.548) / 0.551, 100 * (0.555 - 0.551) / 0.555)
    assert rows["california-housing", 1000][4:] == pytest.approx(percents)


def test_factors_say_where_they_are_bounds(whole):
    _, report = whole
    rows = {row[:3]: row[3] for row in values(report, "efficiency", "task", "family", "budget", "factor")}
    assert rows["mnist", "trees", 36_000][1] == ">"  # no dense MLP comes to 0.9852
    assert rows["mnist", "trees", 36_000][0] == pytest.approx(144_000 / 36_000, rel=0.02)
    assert rows["mnist", "trees", 9000][1] == ""
    assert not [key for key in rows if key[0] == "mnist:128"]  # one dense MLP alone is not a curve
    column = next(column for column in report.section("efficiency").columns if column.name == "factor")
    assert show(rows["mnist", "trees", 36_000], column) == ">\N{NO-BREAK SPACE}4.0\N{MULTIPLICATION SIGN}"


def test_every_gain_is_shown_whatever_its_sign(whole):
    _, report = whole
    rows = values(report, "gains", "task", "budget", "kind", "gain", "interval", "corrected_p", "unit", "verdict")
    assert len(rows) == 3 * (4 + 1 + 4)
    signs = {(row[2], row[3] > 0) for row in rows}
    assert signs >= {("tree", True), ("tree", False), ("wiring", True), ("wiring", False)}
    for _, _, _, gain, (low, high), p, _, verdict in rows:
        assert low < gain < high
        assert verdict == ("undecided" if p >= 0.05 else "ahead" if gain > 0 else "behind")
    assert {row[6] for row in rows if row[0] == "california-housing"} == {"%"}
    assert "A wiring gain is not a tree gain" in report.section("gains").text


# ----------------------------------------------------------------------------------------------------------- coverage


def test_a_run_is_measured_by_what_was_asked(whole):
    records, report = whole
    rows = dict(values(report, "coverage", "task", "state"))  # nothing asked: what was begun
    assert rows == dict.fromkeys(("mnist", "mnist, 128 training examples", "california-housing"), "complete")
    assert ("32 of 32", "cells evaluated on the test set") in report.facts
    assert not any("part of the comparison" in sentence for sentence in report.summary)
    asked = report_of(records, ComparisonPlan.make(["mnist", "digits"], families=OURS, seeds=5))
    assert asked.summary[0] == (
        "The comparison is not complete: 32 of 42 cells have been evaluated. Not started: digits."
    )


def test_cells_without_their_search_or_their_seeds_are_not_whole():
    plan = ComparisonPlan.make(["digits"], budgets=["1k"], families=OURS, trials=2, seeds=5)
    records = three("digits", 1000, 0.9, 0.9, 0.9)
    records += made_up_cell("digits", "linear", 0, [0.9, 0.91, 0.92])  # two seeds are still to come
    (found,) = coverage(records, 2, plan)
    assert (found.cells, found.searched, found.evaluated, found.state) == (4, 4, 3, "partial")
    assert "Partial: digits (3 of 4)." in report_of(records, plan).summary[0]
    searching = made_up_cell("digits", "tree", 1000, [], searched=1)
    (found,) = coverage(searching, 2, plan)
    assert (found.searched, found.evaluated, found.trials, found.state) == (0, 0, 1, "partial")
    assert report_of(searching, plan).summary[1] == "No model has been evaluated on a test set yet."


# ---------------------------------------------------------------------------------------------------------- sentences


def test_one_seed_gives_no_interval_no_test_and_a_warning():
    report = report_of(three("digits", 1000, 0.90, 0.92, 0.91, seeds=1))
    assert [math.isnan(p) for (p,) in values(report, "gains", "corrected_p")] == [True] * 3
    assert values(report, "gains", "verdict") == [(None,)] * 3
    assert [round(gain, 6) for (gain,) in values(report, "gains", "gain")] == [-2.0, 1.0, -1.0]
    assert "Some cells have one seed, fewer than the recommended five" in report.summary[0]


def test_two_equal_seeds_give_a_warning_first_no_interval_and_no_more_than_the_test_says():
    records = made_up_cell("digits", "tree", 1000, [1.0, 1.0]) + made_up_cell("digits", "dense", 1000, [0.99, 1.0])
    report = report_of(records)
    warning, use, *_ = report.summary
    assert "Some cells have 2 seeds" in warning
    assert "level with trees of this budget (corrected p" in use
    assert not any("interval" in what for _, what in report.facts)
    assert not any("An accuracy of" in sentence for sentence in report.summary)  # each has one size


def test_models_that_diverged_are_named():
    records = made_up_cell("california-housing", "tree", 1000, [math.nan, 0.5])
    records += made_up_cell("california-housing", "sparse", 1000, [0.5, 0.51])
    report = report_of(records)
    assert "Training diverged for at least one seed of trees of" in report.summary[-1]
    assert [line.label for chart in report.section("cells").charts for line in chart.panels[0].lines] == ["sparse"]
    assert "Tree gain" not in " ".join(report.summary)


# ----------------------------------------------------------------------------------------------------------- terminal


def test_a_terminal_of_80_columns_shows_every_number(whole):
    text = printed(whole[0])
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= 80
    line = next(line for line in text.splitlines() if line.split()[:1] == ["9,000"])
    assert line.split()[:7] == ["9,000", "0.9810", "0.9820", "0.9390", "0.9210", f"{MINUS}0.10", "+4.30"]
