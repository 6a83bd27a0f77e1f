"""Rows summed up, the paper beside ours, and tests against controls, on trials whose answers are known."""

import math
import random

import numpy as np
import pytest
from made_trials import MLP, TREE, made_trial, scored_trials
from report_cases import MATCHES, TABLES, made_up_records
from scipy import stats

from dendritree_lab.studies.engine.statistics import Spread, bootstrap_mean, welch
from dendritree_lab.studies.paper.analysis import (
    PAPER_TRIALS,
    ExpectedRow,
    Model,
    against_paper,
    best_dropout,
    compare,
    read_expected,
    summarize,
)
from dendritree_lab.studies.paper.paper_report import build_report
from dendritree_lab.studies.paper.several_draws import DrawnRow, among_draws, gaps
from dendritree_lab.studies.paper.spec import TableRow

NOISE = (-0.03, -0.01, 0.0, 0.01, 0.03)


def row(size, dropout=0.0, *, network="mln", task="multiclass"):
    return TableRow(f"{task}-{'dendritic' if 'mln' in network else 'mlp'}", task, network, size, dropout)


def around(mean):
    return [mean + noise for noise in NOISE]


# ---------------------------------------------------------------------------------------------------------- summarize


def test_a_row_is_summed_up_at_the_best_epoch_of_each_trial():
    names = ("train_loss", "val_loss", "train_acc", "val_acc")
    numbers = [
        ([3.0, 2.0, 1.0], [2.0, 0.5, 1.0], [0.1, 0.2, 0.3], [0.4, 0.5, 0.9]),
        ([3.0, 4.0, 1.0], [2.0, 1.5, 1.0], [0.1, 0.2, 0.6], [0.4, 0.9, 0.7]),
    ]
    curves = [dict(zip(names, each, strict=True)) for each in numbers]
    trials = [made_trial(TREE, i, curves=h, parameters=10_890) for i, h in enumerate(curves)]
    [summary] = summarize(trials)
    assert (summary.protocol, summary.row, summary.n, summary.parameters) == ("paper", TREE, 2, 10_890)
    assert summary.val_acc == pytest.approx((0.6, math.sqrt(0.02)))  # 0.5 at epoch 1 and 0.7 at epoch 2
    assert summary.train_acc == pytest.approx((0.4, math.sqrt(0.08)))
    assert summary.val_loss == pytest.approx((0.75, math.sqrt(0.125)))
    assert summary.train_loss == pytest.approx((1.5, math.sqrt(0.5)))
    assert (summary.best_epoch, summary.lr) == (1.5, 0.001)
    assert summary.test_acc is None
    assert summary.accuracy == summary.val_acc
    assert summary.interval == bootstrap_mean([0.5, 0.7])


def test_protocols_and_rows_are_kept_apart_and_sorted():
    rows = [row(b, p) for b in (2, 32) for p in (0.0, 0.1)]
    trials = [made_trial(r, i, protocol=protocol) for protocol in ("paper", "full") for r in rows for i in (0, 1)]
    summaries = summarize(random.Random(0).sample(trials, len(trials)))
    assert [(s.protocol, s.row) for s in summaries] == [(protocol, r) for protocol in ("full", "paper") for r in rows]
    assert {s.n for s in summaries} == {2}


def test_a_diverged_trial_gives_no_warning():
    bad = made_trial(
        index=1, curves={"train_loss": [math.inf], "val_loss": [math.nan], "train_acc": [0.1], "val_acc": [0.1]}
    )
    [summary] = summarize([made_trial(), bad])
    assert math.isnan(summary.val_loss.mean)
    assert summary.train_loss.mean == math.inf
    assert summary.val_acc.mean == pytest.approx((made_trial().at_best("val_acc") + 0.1) / 2)


# ------------------------------------------------------------------------------------------------------- best dropout


def test_the_best_dropout_has_the_lowest_loss_whatever_the_accuracy_and_is_not_zero():
    losses = {0.0: 0.1, 0.1: 0.9, 0.2: 0.5, 0.3: 0.5, 0.4: math.nan}
    trials = [t for p, loss in losses.items() for t in scored_trials(row(32, p), [p, p], loss=loss)]
    trials += scored_trials(row(11, 0.6, network="mlp"), [0.5], loss=9.0) + scored_trials(row(2), [0.5])
    best = best_dropout(summarize(trials))
    assert {model: summary.row.dropout for model, summary in best.items()} == {
        Model("paper", "multiclass", "mln", 32): 0.2,
        Model("paper", "multiclass", "mlp", 11): 0.6,
    }


# -------------------------------------------------------------------------------------------------- against the paper


def test_the_papers_numbers_are_read_whole():
    expected = read_expected()
    assert len(expected) == 34
    first, last = expected[0], expected[-1]
    assert first.row == TableRow("binary-dendritic", "binary", "mln-binary", 2, 0.0)
    assert (first.train_acc, first.val_acc) == ((0.91, 0.06), (0.85, 0.09))
    assert (last.row.network, last.row.size, last.row.dropout, last.val_acc) == ("conv-mlp", 11, 0.1, (0.67, 0.07))


def test_each_row_of_the_paper_is_set_beside_ours_at_its_own_dropout():
    expected = read_expected()
    shifts = {("mln", 32, 0.4): 0.02, ("mln", 32, 0.0): 0.2}
    ours = [e.row for e in expected if e.row.task == "multiclass" and e.row.dendritic]
    means = {e.row: e.val_acc.mean + shifts.get((e.row.network, e.row.size, e.row.dropout), 0.0) for e in expected}
    trials = [t for r in ours for t in scored_trials(r, around(means[r]))]
    trials += scored_trials(row(32, 0.1), [0.1, 0.2])  # a dropout that the paper does not show
    rows = against_paper(summarize(trials), expected)
    assert [r.expected for r in rows] == expected
    assert [r.ours is not None for r in rows] == [e.row in ours for e in expected]
    assert all((r.difference, r.tolerance, r.within, r.p) == (None,) * 4 for r in rows if r.ours is None)
    for r in rows:
        if r.ours:
            numbers = *r.ours.val_acc, len(NOISE), *r.expected.val_acc, PAPER_TRIALS
            assert r.p == pytest.approx(stats.ttest_ind_from_stats(*numbers, equal_var=False).pvalue)
    by_row = {r.expected.row: r for r in rows}
    sd = np.std(NOISE, ddof=1)
    close, far = by_row[row(32, 0.4)], by_row[row(32, 0.0)]
    assert (close.difference, close.tolerance) == pytest.approx((0.02, 2 * math.sqrt(sd**2 + 0.02**2)))
    assert close.within is True
    assert (far.difference, far.tolerance) == pytest.approx((0.2, 2 * math.sqrt(sd**2 + 0.02**2)))
    assert far.within is False


# ------------------------------------------------------------------------------------------------------------ compare


def test_families_are_corrected_within_a_task_and_protocol():
    binary_tree, binary_mlp = row(32, network="mln-binary", task="binary"), row(2, network="mlp", task="binary")
    accuracies = {
        TREE: around(0.8),
        MLP: around(0.77),
        row(2): around(0.75),
        binary_tree: around(0.9),
        binary_mlp: around(0.87),
    }
    trials = [t for r, values in accuracies.items() for t in scored_trials(r, values)]
    pairs = [(TREE, MLP), (row(2), MLP), (binary_tree, binary_mlp), (row(4), MLP)]  # the last was not run
    tests = compare(trials, pairs)
    assert [(test.row, test.against) for test in tests] == pairs[:3]
    plain = [welch(accuracies[a], accuracies[b]).p for a, b in pairs[:3]]
    assert [each.test.p for each in tests] == pytest.approx(plain)
    assert plain[0] < plain[1]
    assert [test.corrected_p for test in tests] == pytest.approx([2 * plain[0], max(2 * plain[0], plain[1]), plain[2]])
    assert tests[0].difference == pytest.approx(0.03)
    assert tests[0].test.low < 0.03 < tests[0].test.high
    assert tests[0].effect.low < tests[0].effect.g < tests[0].effect.high


def test_protocols_are_families_of_their_own_with_measures_of_their_own():
    trials = [
        *scored_trials(TREE, around(0.8)),
        *scored_trials(MLP, around(0.7)),
        *scored_trials(TREE, around(0.95), protocol="full", test=True),
        *scored_trials(MLP, around(0.93), protocol="full", test=True),
    ]
    full, paper = compare(trials, [(TREE, MLP)])
    assert (full.protocol, full.measure, paper.protocol, paper.measure) == ("full", "test_acc", "paper", "val_acc")
    assert (full.difference, paper.difference) == pytest.approx((0.02, 0.1))
    assert (full.corrected_p, paper.corrected_p) == (full.test.p, paper.test.p)


# -------------------------------------------------------------------------------------------------------- several draws


def test_the_papers_value_is_placed_among_draws_of_ten_trials():
    expected = ExpectedRow(made_trial().row, Spread(0.9, 0.02), Spread(0.5, 0.02))
    curves = {"train_loss": [1.0], "val_loss": [1.0], "train_acc": [0.9]}
    trials = [
        made_trial(index=index, curves=curves | {"val_acc": [accuracy]})
        for index, accuracy in enumerate(np.repeat([0.45, 0.55, 0.4, 0.9], [10, 10, 10, 5]))  # the last is not complete
    ]
    [drawn] = among_draws(trials, [expected])
    assert drawn.means == pytest.approx((0.45, 0.55, 0.4))
    assert (drawn.rank, drawn.inside) == (2, True)
    assert among_draws(trials[:20], [expected]) == []


def test_the_gap_of_trees_and_controls_is_taken_draw_by_draw():
    tree, control = (
        next(row for row in read_expected() if row.row.dendritic == dendritic) for dendritic in (True, False)
    )
    rows = [DrawnRow(tree, (0.5, 0.7, 0.6)), DrawnRow(control, (0.4, 0.6, 0.5)), DrawnRow(tree, (0.1, 0.2))]
    [gap] = gaps(rows)  # the draws differ by 0.2, the gap does not; a row without all draws does not count
    assert gap.ours == pytest.approx((0.1, 0.1, 0.1))
    assert gap.paper == pytest.approx(tree.val_acc.mean - control.val_acc.mean)


def test_the_chance_of_one_more_draw_is_that_of_a_draw_like_ours():
    random = np.random.default_rng(0)
    unlikely = 0
    for _ in range(400):
        *means, paper = random.normal(0.7, 0.03, 11)
        row = ExpectedRow(made_trial().row, Spread(0.9, 0.02), Spread(paper, 0.02))
        unlikely += DrawnRow(row, tuple(sorted(means))).test.p < 0.05
    assert 8 <= unlikely <= 34  # 20 expected; 99.8 % of binomial draws are in this range


def test_a_report_has_the_chart_and_with_ten_draws_the_section():
    trials = made_up_records(TABLES[:1], trials=30, epochs=3)
    report = build_report(trials, {}, read_expected(), MATCHES, draw="ten")
    [line] = report.section("paper").charts[0].panels[0].lines
    papers = [row for row in read_expected() if row.row.table == TABLES[0]]
    assert line.x == tuple(row.val_acc.mean for row in papers)
    assert line.left == tuple(row.val_acc.mean - row.val_acc.sd for row in papers)
    assert len(list(report.section("draws").rows)) == len(papers) == 6
    assert "Among our 3 draws of images" in " ".join(report.summary)
    without = build_report(trials, {}, read_expected(), MATCHES)
    assert "draws" not in [section.name for section in without.sections]
    assert "By Welch's test, uncorrected, " in " ".join(without.summary)
