"""The paper's numbers next to ours: table by table, in a scatter plot, and among several draws of images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from ...report.chart import Chart, Line, Panel
from ...report.layout import Column, Section
from ..engine.statistics import Spread
from .agreement import DrawnRow, paper_difference
from .analysis import PaperRow, RowSummary
from .matched import PAPER
from .paper_sections import DROPOUT, MODEL, TASK
from .records import Row

KINDS = {
    (True, False): ("trees", "tree"),
    (False, False): ("MLPs", "dense"),
    (True, True): ("CNN and trees", "tree-conv"),
    (False, True): ("CNN and MLPs", "conv"),
}
"""Label and style of rows, by whether they are dendritic and have a CNN."""
VARIES = " (varies from machine to machine)"
AGREEMENT = {True: "within", False: "outside", None: "one trial"}
"""The agreement in words; None if there is no standard deviation."""


def paper_section(
    rows: Sequence[PaperRow], summaries: Sequence[RowSummary], shown: Collection[Row], *, draw: str = "per-trial"
) -> Section:
    """The paper's numbers next to ours, table by table; then our additional rows, which the paper does not have."""
    printed = {(row.row.task, row.row.network, row.row.size) for row in rows}
    own = [
        PaperRow(None, ours)
        for ours in summaries
        if ours.protocol == PAPER and ours.model[1:] not in printed and ours.row in shown
    ]

    def ours(name: str, absent: Any = None) -> Callable[[PaperRow], Any]:
        return lambda row: getattr(row.ours, name) if row.ours else absent

    def papers(name: str) -> Callable[[PaperRow], Any]:
        return lambda row: getattr(row.expected, name) if row.expected else None

    def agreement(row: PaperRow) -> str:
        if row.expected is None:
            return "not in the paper"
        return AGREEMENT[row.within] if row.ours else "not run"

    def test(row: PaperRow) -> float | None:
        difference = None if draw == "ten" else paper_difference(row)  # trials of one draw are not independent
        return difference.p if difference else None

    tables = {row.row.table: None for row in (*rows, *own)}
    return Section.of(
        "paper",
        "The paper's tables and ours",
        "Mean accuracy and sample standard deviation over trials, at each trial's best epoch by validation loss, with"
        " the dropout p of the paper's row. A row is within if the mean validation accuracies differ by no more than"
        " the tolerance, twice the square root of the sum of both variances, which is wide. The p value is that of"
        " Welch's test for the same means with ten trials each, uncorrected; the test assumes independent trials, but"
        " the paper's share one draw of images, so their standard deviations do not include the variation between draws"
        " and their errors are correlated."
        " Rows with a CNN vary from machine to machine: processors sum convolutions in different orders, and training"
        " amplifies the rounding. dendritree reproduce --draw ten places the paper's values among ten draws."
        " Rows that are not in the paper are shown without dropout and at their best dropout.",
        (
            MODEL,
            Column("table", value="row.table"),
            TASK,
            DROPOUT,
            Column("paper_val_acc", "val., paper", "spread", digits=2, value=papers("val_acc")),
            Column("val_acc", "val., ours", "spread", value=ours("val_acc")),
            Column("difference", "difference", "difference"),
            Column("tolerance", "tolerance", "number", detail=True),
            Column("state", "agreement", "badge", value=agreement),
            Column("welch_p", "p value", "p", detail=True, value=test),
            Column("paper_train_acc", "train, paper", "spread", digits=2, detail=True, value=papers("train_acc")),
            Column("train_acc", "train, ours", "spread", detail=True, value=ours("train_acc")),
            Column("trials", "trials", "count", detail=True, value=ours("n", 0)),
            Column("parameters", "", "count", value=ours("parameters")),
        ),
        sorted((*rows, *own), key=lambda row: list(tables).index(row.row.table)),
        by=lambda row: (row.row.table, f"{row.row.table}{VARIES if row.row.task == 'cnn' else ''}"),
        charts=tuple(agreement_charts(rows)),
        fold=False,
        empty="The paper's numbers are not available.",
    )


def agreement_charts(rows: Sequence[PaperRow]) -> Iterator[Chart]:
    """The paper's accuracies against ours, one point per row."""
    bars = [
        (row.row, row.expected.val_acc, mean, mean - sd, mean + sd)
        for row in rows
        if row.expected and row.ours and row.difference is not None
        for mean, sd in [row.ours.val_acc]
    ]
    if bars:
        title = f"Paper against ours, {len(bars)} rows"
        yield _agreement("paper-chart", title, "bars of one standard deviation", bars)


def draws_section(rows: Sequence[DrawnRow]) -> Section:
    """Where the paper's values fall among several draws of images."""
    points = [(row.expected.row, row.expected.val_acc, row.spread.mean, min(row.means), max(row.means)) for row in rows]
    bars = "bars from the lowest to the highest of our draws, and of one standard deviation in the paper"
    chart = _agreement("draws-chart", f"Paper against our {len(rows[0].means)} draws", bars, points)
    return Section.of(
        "draws",
        "The paper's draw among ours",
        "The authors trained all trials of a task on one draw of images. Here every row was repeated with several"
        " draws, ten trials each. The paper's value is inside if it is between the lowest and the highest mean of a"
        " draw; the p value, uncorrected, says whether it could be that of one more draw (Student's test). Rows"
        " of one task share their draws, so they are not independent of each other.",
        (
            Column("model", "model", value="expected.row.model"),
            Column("table", value="expected.row.table"),
            Column("task", value="expected.row.task"),
            Column("dropout", "p", "number", digits=1, value="expected.row.dropout"),
            Column("paper_val_acc", "paper", "number", digits=2, value="expected.val_acc.mean"),
            Column("draws", "our draws, mean and sd", "spread", value="spread"),
            Column("range", "lowest to highest", "interval", value=lambda row: (min(row.means), max(row.means))),
            Column("below", "draws below the paper", value=lambda row: f"{row.rank} of {len(row.means)}"),
            Column("state", "the paper is", "badge", value=lambda row: "inside" if row.inside else "outside"),
            Column("p", "p value", "p", value="test.p"),
        ),
        rows,
        by=lambda row: (row.expected.row.table, row.expected.row.table),
        charts=(chart,),
        fold=False,
    )


def _agreement(name: str, title: str, bars: str, points: Sequence[tuple[Row, Spread, float, float, float]]) -> Chart:
    """A chart of rows: the paper's value, and ours with the ends of its bar."""
    lines = []
    for (dendritic, cnn), (label, look) in KINDS.items():
        chosen = [each for each in points if each[0].dendritic == dendritic and (each[0].task == "cnn") == cnn]
        if chosen:
            _, papers, y, low, high = zip(*chosen, strict=True)
            x, left, right = (tuple(paper.mean + sign * paper.sd for paper in papers) for sign in (0, -1, 1))
            lines.append(Line(label, look, 0, x, y, low, high, left, right))
    alt = f"Mean validation accuracy of {len(points)} rows, ours against the paper's, {bars}; equal on the diagonal."
    panel = Panel("validation accuracy, ours", tuple(lines))
    return Chart(name, title, alt, "validation accuracy, paper", (panel,), form="agreement")
