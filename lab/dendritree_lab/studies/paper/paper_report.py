"""From trials to a report: all numbers that are shown, before anything is drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ...report import Report, ReportFiles, write_report
from ...report.chart import Chart
from ...report.layout import Column, Section
from ..engine.machine_section import machine_section, run_info
from ..engine.store import RunStore
from .analysis import (
    FEWEST_TRIALS,
    PAPER_TRIALS,
    ComparedRow,
    Comparison,
    ExpectedRow,
    RowSummary,
    against_paper,
    compare,
    read_expected,
    summarize,
)
from .claims import Matches, claims
from .errata import errata_section
from .matched import Match, matched_rows, reading_order, shown_rows
from .paper_charts import agreement_chart, learning_curves
from .paper_sections import (
    DROPOUT,
    MODEL,
    TASK,
    Planned,
    ReferenceSeconds,
    claims_section,
    comparisons_section,
    curves_section,
    dropout_section,
    missing_section,
    parameters_section,
    results_section,
    timing_section,
)
from .paper_trials import PaperTrial
from .reproduction import RunPlan, planned_trials, reference_seconds_of, trials_of
from .several_draws import among_draws, draws_section
from .spec import PAPER, PROTOCOLS, TableRow, matches, read_specs
from .summary import Findings, facts, sentences

TITLE = "Dendritic-tree neurons against perceptrons: the paper and our run"


def build_report(
    trials: Sequence[PaperTrial],
    info: Mapping[str, Any],
    expected: Sequence[ExpectedRow],
    matches: Matches,
    *,
    planned: Planned | None = None,
    reference_seconds: ReferenceSeconds | None = None,
    draw: str = "per-trial",
) -> Report:
    """Build the report from the trials run so far, all, some or none.

    Args:
        trials: the trials, of any protocols.
        info: machine, versions and settings; nested mappings are shown with dotted keys.
        expected: the paper's rows, from `read_expected`.
        matches: the controls (network, size) of each dendritic (task, branching).
        planned: how many trials each (protocol, row) should have, to report missing ones; by default ten for each row
            of the paper.
        reference_seconds: seconds per trial with the masked reference, for each (protocol, row) that was measured.
        draw: how protocol `paper` drew images.

    >>> row = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> trials = [PaperTrial.make("paper", row, i, i, "mnist", 0.001, 11_395, 0.1, curves) for i in range(3)]
    >>> report = build_report(trials, {"torch": "2.6.0"}, [], {})
    >>> [section.name for section in report.sections][:3]
    ['claims', 'paper', 'comparisons']
    """
    planned = {(PAPER.name, row.row): PAPER_TRIALS for row in expected} if planned is None else planned
    reference = reference_seconds or {}
    summaries = sorted(summarize(trials), key=reading_order)
    shown, pairs = shown_rows(summaries), matched_rows(summaries, matches)
    findings = Findings(
        trials=trials,
        planned=planned,
        paper_rows=against_paper(summaries, expected),
        comparisons=_compare(trials, pairs),
        verdicts=sorted(claims(trials, matches), key=lambda verdict: verdict.protocol != PAPER.name),
        reference_seconds=reference,
        drawn=among_draws([each for each in trials if each.protocol == PAPER.name], expected) if draw == "ten" else (),
    )
    paper_rows_shown = {row for rows in shown.values() for model, row in rows.items() if model.protocol == PAPER.name}
    sections = (
        claims_section(findings.verdicts),
        paper_section(findings.paper_rows, summaries, paper_rows_shown, draw=draw),
        *([draws_section(findings.drawn)] if findings.drawn else []),
        comparisons_section(findings.comparisons),
        results_section(summaries),
        dropout_section(summaries, shown["best"]),
        parameters_section(summaries, shown),
        curves_section(summaries, shown, learning_curves(trials, pairs)),
        timing_section(trials, reference),
        errata_section(),
        missing_section(trials, planned),
        machine_section(info),
    )
    return Report(TITLE, tuple(sentences(findings)), sections, tuple(facts(findings)))


def report_of_run(
    folder: str | os.PathLike[str], plan: RunPlan | None = None, *, out: str | os.PathLike[str] | None = None
) -> tuple[Report, ReportFiles]:
    """Build the report of the run in `folder`, which may still be running, and write it.

    Args:
        folder: the run.
        plan: what the complete run contains; by default, what was last asked for.
        out: where the report is written; by default, the run's own folder.
    """
    with RunStore.open_for_reading(folder) as store:
        info, reference, stored = run_info(store), reference_seconds_of(store), trials_of(store)
        planned = dict(planned_trials(store))
        draw = store.config.get("protocols", {}).get(PAPER.name, {}).get("draw", "per-trial")
    trials = [trial for trial in stored if trial.protocol in PROTOCOLS]
    if plan is not None:
        planned |= plan.planned(stored)
    report = build_report(
        trials, info, read_expected(), matches(read_specs()), planned=planned, reference_seconds=reference, draw=draw
    )
    return report, write_report(report, out or folder)


def _compare(trials: Sequence[PaperTrial], pairs: Sequence[Match]) -> list[Comparison]:
    """Every dendritic row against its controls; per protocol, because each protocol has its own best dropouts."""
    tests = []
    for protocol in sorted({pair.protocol for pair in pairs}):
        rows = [(pair.row, control) for pair in pairs if pair.protocol == protocol for control in pair.controls]
        tests += compare([trial for trial in trials if trial.protocol == protocol], dict.fromkeys(rows))
    return sorted(tests, key=reading_order)


# ---------------------------------------------------------------------------------------------- the paper's tables

VARIES = " (varies from machine to machine)"


def paper_section(
    rows: Sequence[ComparedRow],
    summaries: Sequence[RowSummary],
    shown: Collection[TableRow],
    *,
    draw: str = "per-trial",
) -> Section:
    """The paper's numbers next to ours, table by table; then our additional rows, which the paper does not have."""
    printed = {(row.row.task, row.row.network, row.row.size) for row in rows}
    own = [
        ComparedRow(None, ours)
        for ours in summaries
        if ours.protocol == PAPER.name and ours.model[1:] not in printed and ours.row in shown
    ]

    def ours(name: str, absent: Any = None) -> Callable[[ComparedRow], Any]:
        return lambda row: getattr(row.ours, name) if row.ours else absent

    def papers(name: str) -> Callable[[ComparedRow], Any]:
        return lambda row: getattr(row.expected, name) if row.expected else None

    independent = draw != "ten"  # trials that share a draw are not
    tables = {row.row.table: None for row in (*rows, *own)}
    return Section.of(
        "paper",
        "The paper's tables and ours",
        "Mean accuracy and sample standard deviation over trials, at each trial's best epoch by validation loss, with"
        " the dropout p of the paper's row. The difference is ours minus the paper's, with its 95% interval and the p"
        " value of Welch's test, uncorrected, for the paper's ten trials and ours. A row differs if p < 0.05; it is"
        " outside if the difference exceeds twice the square root of the sum of both variances, and within if neither"
        f" applies. Fewer than {FEWEST_TRIALS} trials decide nothing. The test assumes independent trials, but"
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
            Column("interval", "95% interval", "interval", value=lambda row: row.interval if independent else None),
            Column("tolerance", form="number"),
            Column("welch_p", "p value", "p", detail=True, value=lambda row: row.p if independent else None),
            Column("trials", "trials", "count", value=ours("n", 0)),
            Column("state", "agreement", "badge", value=lambda row: row.state(tests=independent)),
            Column("paper_train_acc", "train, paper", "spread", digits=2, detail=True, value=papers("train_acc")),
            Column("train_acc", "train, ours", "spread", detail=True, value=ours("train_acc")),
            Column("parameters", "", "count", value=ours("parameters")),
        ),
        sorted((*rows, *own), key=lambda row: list(tables).index(row.row.table)),
        by=lambda row: (row.row.table, f"{row.row.table}{VARIES if row.row.task == 'cnn' else ''}"),
        charts=tuple(agreement_charts(rows)),
        fold=False,
        empty="The paper's numbers are not available.",
    )


def agreement_charts(rows: Sequence[ComparedRow]) -> Iterator[Chart]:
    """The paper's accuracies against ours, one point per row."""
    bars = [
        (row.row, row.expected.val_acc, mean, mean - sd, mean + sd)
        for row in rows
        if row.expected and row.ours and row.difference is not None
        for mean, sd in [row.ours.val_acc]
    ]
    if bars:
        title = f"Paper against ours, {len(bars)} rows"
        yield agreement_chart("paper-chart", title, "bars of one standard deviation", bars)
