"""From records to a report: all numbers that are shown, before anything is drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...report import Report, ReportFiles, write_report
from ..engine.machine_section import machine_section, run_info
from ..engine.store import RunStore
from .agreement import PAPER_TRIALS, among_draws
from .agreement_section import draws_section, paper_section
from .analysis import Comparison, against_paper, compare, summarize
from .claims import Matches, claims
from .errata import errata_section
from .expected import ExpectedRow, read_expected
from .learning_curves import learning_curves
from .matched import PAPER, Match, matched_rows, reading_order, shown_rows
from .paper_sections import (
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
from .protocol import PROTOCOLS
from .records import TrialRecord
from .reproduction import RunPlan, planned_trials, records_of, reference_seconds_of
from .spec import matches, paper_folder, read_specs
from .summary import Findings, facts, sentences

TITLE = "Dendritic-tree neurons against perceptrons: the paper and our run"


def build_report(
    records: Sequence[TrialRecord],
    info: Mapping[str, Any],
    expected: Sequence[ExpectedRow],
    matches: Matches,
    *,
    planned: Planned | None = None,
    reference_seconds: ReferenceSeconds | None = None,
    draw: str = "per-trial",
) -> Report:
    """Build the report from the trials run so far, all, some or none. Needs the extra `experiments`.

    Args:
        records: the trials, of any protocols.
        info: machine, versions and settings; nested mappings are shown with dotted keys.
        expected: the paper's rows, from `read_expected`.
        matches: the controls (network, size) of each dendritic (task, branching).
        planned: how many trials each (protocol, row) should have, to report missing ones; by default ten for each row
            of the paper.
        reference_seconds: seconds per trial with the masked reference, for each (protocol, row) that was measured.
        draw: how protocol `paper` drew images.

    >>> from dendritree_lab.studies.paper.records import Row
    >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> trials = [TrialRecord("paper", row, i, i, "mnist", 0.001, 11_395, 0.1, curves) for i in range(3)]
    >>> report = build_report(trials, {"torch": "2.6.0"}, [], {})
    >>> [section.name for section in report.sections][:3]
    ['claims', 'paper', 'comparisons']
    """
    planned = {(PAPER, row.row): PAPER_TRIALS for row in expected} if planned is None else planned
    reference = reference_seconds or {}
    summaries = sorted(summarize(records), key=reading_order)
    shown, pairs = shown_rows(summaries), matched_rows(summaries, matches)
    findings = Findings(
        records=records,
        planned=planned,
        paper_rows=against_paper(summaries, expected),
        comparisons=_compare(records, pairs),
        verdicts=sorted(claims(records, matches), key=lambda verdict: verdict.protocol != PAPER),
        reference_seconds=reference,
        drawn=among_draws([each for each in records if each.protocol == PAPER], expected) if draw == "ten" else (),
    )
    paper_rows_shown = {row for rows in shown.values() for model, row in rows.items() if model.protocol == PAPER}
    sections = (
        claims_section(findings.verdicts),
        paper_section(findings.paper_rows, summaries, paper_rows_shown, draw=draw),
        *([draws_section(findings.drawn)] if findings.drawn else []),
        comparisons_section(findings.comparisons),
        results_section(summaries),
        dropout_section(summaries, shown["best"]),
        parameters_section(summaries, shown),
        curves_section(summaries, shown, learning_curves(records, pairs)),
        timing_section(records, reference),
        errata_section(),
        missing_section(records, planned),
        machine_section(info),
    )
    return Report(TITLE, tuple(sentences(findings)), sections, tuple(facts(findings)))


def report_of_run(
    folder: str | os.PathLike[str], plan: RunPlan | None = None, *, out: str | os.PathLike[str] | None = None
) -> tuple[Report, ReportFiles]:
    """Build the report of the run in `folder`, which may still be running, and write it; needs the extra `report`.

    Args:
        folder: the run.
        plan: what the complete run contains; by default, all of every table that was started.
        out: where the report is written; by default, the run's own folder.
    """
    with RunStore.open_for_reading(folder) as store:
        info, reference = run_info(store), reference_seconds_of(store)
        draw = store.config.get("protocols", {}).get(PAPER, {}).get("draw", "per-trial")
        records = [record for record in records_of(store) if record.protocol in PROTOCOLS]
        begun = {(record.protocol, record.row.table) for record in records}
        planned: dict[Any, int] = {
            key: trials
            for protocol in PROTOCOLS
            for key, trials in planned_trials(
                RunPlan.make(protocol=protocol, draw=draw if protocol == PAPER else None), store
            ).items()
            if (protocol, key[1].table) in begun
        }
        if plan is not None:
            planned |= planned_trials(plan, store)
    expected = read_expected(paper_folder() / "expected" / "results.csv")
    report = build_report(
        records, info, expected, matches(read_specs()), planned=planned, reference_seconds=reference, draw=draw
    )
    return report, write_report(report, out or folder)


def _compare(records: Sequence[TrialRecord], pairs: Sequence[Match]) -> list[Comparison]:
    """Every dendritic row against its controls; per protocol, because each protocol has its own best dropouts."""
    tests = []
    for protocol in sorted({pair.protocol for pair in pairs}):
        rows = [(pair.row, control) for pair in pairs if pair.protocol == protocol for control in pair.controls]
        tests += compare([record for record in records if record.protocol == protocol], dict.fromkeys(rows))
    return sorted(tests, key=reading_order)
