"""How far our rows are from the paper's: against scipy, and against draws that were made so."""

import numpy as np
import pytest
from made_trials import made_trial
from report_cases import EXPECTED_FILE, MATCHES, TABLES, made_up_records
from scipy import stats

from dendritree_lab.studies.engine.statistics import Spread
from dendritree_lab.studies.paper.agreement import DrawnRow, among_draws, gaps, paper_difference, signs
from dendritree_lab.studies.paper.analysis import against_paper, summarize
from dendritree_lab.studies.paper.expected import ExpectedRow, read_expected
from dendritree_lab.studies.paper.paper_report import build_report

EXPECTED = read_expected(EXPECTED_FILE)


@pytest.fixture(scope="module")
def rows():
    return against_paper(summarize(made_up_records(TABLES[:2], trials=7, epochs=3)), EXPECTED)


def test_the_test_is_welchs_on_means_and_deviations(rows):
    tested = [row for row in rows if row.ours]
    assert len(tested) == 10
    for row in tested:
        ours, paper = row.ours.val_acc, row.expected.val_acc
        p = stats.ttest_ind_from_stats(*ours, 7, *paper, 10, equal_var=False).pvalue
        assert paper_difference(row).p == pytest.approx(p)
    assert {paper_difference(row) for row in rows if not row.ours} == {None}


def test_signs_are_counted_by_table(rows):
    counted = signs(rows)
    assert {table: count for table, (_, count) in counted.items()} == {"binary-dendritic": 6, "binary-mlp": 4}
    below = [
        row.row.table
        for row in rows
        if row.difference is not None and row.ours.val_acc.mean < row.expected.val_acc.mean
    ]
    assert {table: number for table, (number, _) in counted.items()} == {t: below.count(t) for t in counted}


def test_the_papers_value_is_placed_among_draws_of_ten_trials():
    expected = ExpectedRow(made_trial().row, "label", Spread(0.9, 0.02), Spread(0.5, 0.02))
    curves = {"train_loss": [1.0], "val_loss": [1.0], "train_acc": [0.9]}
    records = [
        made_trial(index=index, history=curves | {"val_acc": [accuracy]})
        for index, accuracy in enumerate(np.repeat([0.45, 0.55, 0.4, 0.9], [10, 10, 10, 5]))  # the last is not complete
    ]
    [found] = among_draws(records, [expected])
    assert found.means == pytest.approx((0.45, 0.55, 0.4))
    assert (found.rank, found.inside) == (2, True)
    assert among_draws(records[:20], [expected]) == []


def test_the_gap_of_trees_and_controls_is_taken_draw_by_draw():
    tree, control = (next(row for row in EXPECTED if row.row.dendritic == dendritic) for dendritic in (True, False))
    rows = [DrawnRow(tree, (0.5, 0.7, 0.6)), DrawnRow(control, (0.4, 0.6, 0.5)), DrawnRow(tree, (0.1, 0.2))]
    [gap] = gaps(rows)  # the draws differ by 0.2, the gap does not; a row without all draws does not count
    assert gap.ours == pytest.approx((0.1, 0.1, 0.1))
    assert gap.paper == pytest.approx(tree.val_acc.mean - control.val_acc.mean)


def test_the_chance_of_one_more_draw_is_that_of_a_draw_like_ours():
    random = np.random.default_rng(0)
    unlikely = 0
    for _ in range(400):
        *means, paper = random.normal(0.7, 0.03, 11)
        row = ExpectedRow(made_trial().row, "label", Spread(0.9, 0.02), Spread(paper, 0.02))
        unlikely += DrawnRow(row, tuple(sorted(means))).test.p < 0.05
    assert 8 <= unlikely <= 34  # 20 expected; 99.8 % of binomial draws are in this range


def test_a_report_has_the_chart_and_with_ten_draws_the_section():
    records = made_up_records(TABLES[:1], trials=30, epochs=3)
    report = build_report(records, {}, EXPECTED, MATCHES, draw="ten")
    [line] = report.section("paper").charts[0].panels[0].lines
    papers = [row for row in EXPECTED if row.row.table == TABLES[0]]
    assert line.x == tuple(row.val_acc.mean for row in papers)
    assert line.left == tuple(row.val_acc.mean - row.val_acc.sd for row in papers)
    assert len(list(report.section("draws").rows)) == len(papers) == 6
    assert "Among our 3 draws of images" in " ".join(report.summary)
    without = build_report(records, {}, EXPECTED, MATCHES)
    assert "draws" not in [section.name for section in without.sections]
    assert "By Welch's test, uncorrected, " in " ".join(without.summary)
