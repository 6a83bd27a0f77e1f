"""The report as data: numbers worked out by hand, on a run of nine rows; and runs that are not complete."""

import math

import pytest
from made_trials import scored_trials
from report_cases import MATCHES, TABLES, made_up_records

from dendritree_lab.report.layout import mood
from dendritree_lab.studies.engine.statistics import Spread
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper.analysis import ExpectedRow, against_paper, read_expected, summarize
from dendritree_lab.studies.paper.paper_report import build_report, report_of_run
from dendritree_lab.studies.paper.spec import TableRow

TREE = TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.0)
TREE_DROPPED = TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.4)
MLP = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
PLAIN = TableRow("multiclass-mlp", "multiclass", "perceptrons", 0, 0.0)
ABSENT = TableRow("multiclass-mlp", "multiclass", "mlp", 14, 0.0)

EXPECTED = [
    ExpectedRow(TREE, Spread(0.94, 0.05), Spread(0.77, 0.02)),
    ExpectedRow(MLP, Spread(0.87, 0.11), Spread(0.50, 0.04)),
    ExpectedRow(ABSENT, Spread(0.87, 0.08), Spread(0.58, 0.07)),
]
PAIRS = {("multiclass", 32): [("mlp", 11), ("perceptrons", 0)]}


def small_run():
    """Means 0.8, 0.9, 0.6 and 0.7; each with a sample standard deviation of 0.02."""
    means = {TREE: 0.8, TREE_DROPPED: 0.9, MLP: 0.6, PLAIN: 0.7}
    return [
        trial
        for row, mean in means.items()
        for trial in scored_trials(row, (mean - 0.02, mean, mean + 0.02), loss=2 - mean)
    ]


def values(report, section, *names):
    """The columns with these names, a tuple per row."""
    table = report.section(section)
    places = [[column.name for column in table.columns].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in table.rows]


@pytest.fixture(scope="module")
def report():
    return build_report(small_run(), {"torch": "2.6.0", "machine": {"cores": 2}}, EXPECTED, PAIRS)


def test_ours_stands_beside_the_papers(report):
    rows = values(report, "paper", "model", "dropout", "paper_val_acc", "val_acc", "difference", "tolerance", "state")
    tree, mlp, absent, plain = rows
    assert tree[:3] == ("dendritic b=32", 0.0, (0.77, 0.02))
    assert tree[3] == pytest.approx((0.8, 0.02))
    assert tree[4:6] == pytest.approx((0.03, 2 * math.hypot(0.02, 0.02)))
    assert mlp[4:6] == pytest.approx((0.1, 2 * math.hypot(0.04, 0.02)))
    assert (tree[6], mlp[6]) == ("few trials", "few trials")
    assert absent[3:] == (None, None, None, "not run")
    assert (plain[0], plain[2], plain[6]) == ("perceptrons", None, "not in the paper")
    assert plain[3] == pytest.approx((0.7, 0.02))


def test_green_is_for_rows_with_enough_trials_and_no_difference():
    def compared(mean, n):
        (row,) = against_paper(summarize(scored_trials(TREE, [mean - 0.02, mean + 0.02] * (n // 2))), EXPECTED[:1])
        return row

    near, far, away, few = compared(0.77, 10), compared(0.79, 10), compared(0.9, 10), compared(0.77, 2)
    assert [row.state() for row in (near, far, away, few)] == ["within", "differs", "outside", "few trials"]
    assert [mood(row.state()) for row in (near, far, away, few)] == ["good", "open", "bad", "plain"]
    assert far.state(tests=False) == "within"
    assert far.interval[0] < far.difference < far.interval[1]
    assert far.interval[0] > 0


def test_a_summary_of_few_trials_decides_nothing(report):
    text = " ".join(sentence for sentence in report.summary if "not complete" not in sentence)
    assert text.startswith("3 trials per row: nothing is decided")
    assert not any(word in text for word in ("within", "Outside", "ahead", "hold", " p "))


def test_two_trials_have_no_tile_of_agreement(report):
    assert [what for _, what in report.facts] == [
        "trials run",
        "rows of the paper run",
        "of training, summed over trials",
    ]


def test_comparisons_are_of_each_tree_with_its_controls_without_dropout_and_at_the_best(report):
    rows = values(report, "comparisons", "model", "dropout", "control", "control_dropout", "difference", "fewer_trials")
    # Nothing but the tree was run with dropout, so its best has nothing to be compared with
    assert [row[:4] for row in rows] == [
        ("dendritic b=32", 0.0, "MLP h=11", 0.0),
        ("dendritic b=32", 0.0, "perceptrons", 0.0),
    ]
    assert [row[4] for row in rows] == pytest.approx([0.2, 0.1])
    assert [row[5] for row in rows] == [3, 3]


def test_time_counts_like_with_like():
    slow = {("paper", TREE): 30.0, ("full", MLP): 30.0}
    rows = values(
        build_report(small_run(), {}, EXPECTED, PAIRS, reference_seconds=slow),
        *("timing", "model", "trials", "seconds_per_trial", "seconds", "reference_seconds_per_trial", "times_faster"),
    )
    assert rows == [
        ("dendritic b=32", 6, 0.25, 1.5, 30.0, 120.0),  # a trial takes 0.25 s; measured were those without dropout
        ("MLP h=11", 3, 0.25, 0.75, None, None),
        ("perceptrons", 3, 0.25, 0.75, None, None),
    ]


def test_what_is_missing_is_told(report):
    assert values(report, "missing", "model", "dropout", "trials", "planned", "state") == [
        ("dendritic b=32", 0.0, 3, 10, "partial"),
        ("MLP h=11", 0.0, 3, 10, "partial"),
        ("MLP h=14", 0.0, 0, 10, "not run"),
    ]
    planned = {("paper", TREE): 3, ("full", MLP): 1}
    of_plan = build_report(small_run(), {}, EXPECTED, PAIRS, planned=planned)
    assert values(of_plan, "missing", "protocol", "model", "state") == [("full", "MLP h=11", "not run")]
    whole = build_report(small_run(), {}, EXPECTED, PAIRS, planned={("paper", TREE): 3})
    assert not any(whole.section("missing").rows)
    assert not any("not complete" in sentence for sentence in whole.summary)


def test_other_protocols_are_shown_apart_and_by_test_accuracy():
    full = scored_trials(TREE, (0.93, 0.95), protocol="full", test=True)
    full += scored_trials(MLP, (0.90, 0.92), protocol="full", test=True)
    report = build_report([*small_run(), *full], {}, EXPECTED, PAIRS)
    assert [row[0] for row in values(report, "results", "test_acc")] == [
        pytest.approx((0.94, 0.02 / math.sqrt(2))),
        pytest.approx((0.91, 0.02 / math.sqrt(2))),
    ]
    assert len(values(report, "paper", "model")) == 4
    measures = values(report, "comparisons", "protocol", "measure")
    assert measures == [("paper", "validation accuracy")] * 2 + [("full", "test accuracy")]
    assert [chart.panels[0].y_label for chart in report.section("dropout").charts] == [
        "validation accuracy",
        "test accuracy",
    ]


# -------------------------------------------------------------------------------------------------- runs of any size


@pytest.mark.parametrize("tables", [(), TABLES[:1], TABLES[1:2], TABLES[:3], TABLES])
def test_a_report_is_whole_after_any_table(tables):
    expected = read_expected()
    report = build_report(made_up_records(tables, trials=2, epochs=5), {}, expected, MATCHES)
    names = [section.name for section in report.sections]
    assert (len(names), names[:2], names[-2:]) == (11, ["claims", "paper"], ["missing", "machine"])
    states = [row[0] for row in values(report, "paper", "state")]
    done = sum(row.row.table in tables for row in expected)
    assert states.count("few trials") == done
    assert states.count("not run") == 34 - done
    assert bool(report.summary)
    anchors = [group.name for section in report.sections for group in section.groups]
    anchors += [chart.name for section in report.sections for chart in section.charts]
    assert len(set(anchors) | set(names)) == len(anchors) + len(names)


def test_one_trial_and_a_diverged_one_are_no_trouble():
    lone = scored_trials(TREE, [0.8])
    diverged = scored_trials(MLP, [0.1, 0.1], loss=math.nan) + scored_trials(PLAIN, [0.1, 0.2], loss=math.inf)
    report = build_report([*lone, *diverged], {}, EXPECTED, PAIRS)
    assert values(report, "paper", "state")[:1] == [("one trial",)]
    assert not report.section("curves").charts[0].panels[0].lines[0].low


def test_a_stored_run_gives_the_same_report(tmp_path):
    with RunStore.create_or_open(tmp_path, {"protocol": "paper", "fit": {"lr": 0.05}}) as store:
        store.add(small_run())
        report, files = report_of_run(tmp_path)  # while it is being written
    assert files.html.parent == tmp_path
    made = build_report(small_run(), {}, EXPECTED, PAIRS)
    run = [[value for value in values(each, "paper", "val_acc") if value != (None,)] for each in (report, made)]
    assert run[1]
    assert all(value in run[0] for value in run[1])
    known = dict(values(report, "machine", "key", "value"))
    assert known["config.fit.lr"] == "0.05"
    assert {"started", "machine 1.cpu", "machine 1.torch", "machine 1.cores"} <= set(known)
