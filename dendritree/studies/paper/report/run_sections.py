"""Sections about the run itself: what it cost, where it ran, and what is still missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ....report.layout import Column, Group, Section
from ...engine.records import Row, TrialRecord
from .matched import reading_order

__all__ = [
    "Planned",
    "ReferenceSeconds",
    "missing_section",
    "speed_up",
    "timing_section",
]

Planned = Mapping[tuple[str, Row], int]
"""How many trials each row of a protocol is to have."""
ReferenceSeconds = Mapping[tuple[str, Row], float]
"""Seconds that a trial of a protocol's row takes with the masked reference, where it was measured."""


def timing_section(records: Sequence[TrialRecord], reference_seconds: ReferenceSeconds) -> Section:
    """Seconds a trial for every model, and how many times longer the masked reference takes where it was measured."""
    rows: dict[tuple[str, str, str, int], list[TrialRecord]] = {}
    for record in sorted(records, key=lambda record: (reading_order(record), record.row)):
        row = record.row
        rows.setdefault((record.protocol, row.table, row.network, row.size), []).append(record)
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for (protocol, table, _, _), trials in rows.items():
        first = trials[0]
        measured = [reference_seconds[key] for trial in trials if (key := (protocol, trial.row)) in reference_seconds]
        cells = (
            first.row.model,
            protocol,
            table,
            first.row.task,
            len(trials),
            fmean(trial.seconds for trial in trials),
            sum(trial.seconds for trial in trials),
            fmean(measured) if measured else None,
            speed_up(trials, reference_seconds),
        )
        groups.setdefault((protocol, table), []).append(cells)
    return Section(
        "timing",
        "Time",
        "Training time of a trial, validation included; trials that were trained together share their time. The masked"
        " reference is the authors' way, dense matrices and masks, timed on a sample of the same trials on the same"
        " machine.",
        (
            Column("model", "model"),
            Column("protocol"),
            Column("table"),
            Column("task"),
            Column("trials", "trials", "count"),
            Column("seconds_per_trial", "a trial", "seconds"),
            Column("seconds", "all trials", "seconds"),
            Column("reference_seconds_per_trial", "masked reference, a trial", "seconds", detail=True),
            Column("times_faster", "times faster", "ratio"),
        ),
        tuple(
            Group(f"timing-{protocol}-{table}", f"{table}, protocol {protocol}", tuple(lines))
            for (protocol, table), lines in groups.items()
        ),
        empty="No trial has been run yet.",
    )


def speed_up(trials: Iterable[TrialRecord], reference_seconds: ReferenceSeconds) -> float | None:
    """How many times longer the masked reference takes for the trials whose row was measured; None if none was.

    >>> row = Row("multiclass-dendritic", "multiclass", "mln", 32, 0.0)
    >>> trials = [TrialRecord("paper", row, i, i, "mnist", 0.05, 10_890, 0.02, {}) for i in range(3)]
    >>> speed_up(trials, {("paper", row): 3.0})
    150.0
    """
    pairs = [(trial.seconds, reference_seconds.get((trial.protocol, trial.row))) for trial in trials]
    measured = [(ours, reference) for ours, reference in pairs if reference is not None]
    ours = sum(seconds for seconds, _ in measured)
    return sum(reference for _, reference in measured) / ours if ours else None


def missing_section(records: Iterable[TrialRecord], planned: Planned) -> Section:
    """Rows with fewer trials than planned, those not begun included."""
    done: dict[tuple[str, Row], int] = {}
    for record in records:
        key = (record.protocol, record.row)
        done[key] = done.get(key, 0) + 1
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for (protocol, row), trials in planned.items():
        have = done.get((protocol, row), 0)
        if have < trials:
            cells = (row.model, protocol, row.table, row.dropout, have, trials, "partial" if have else "not run")
            groups.setdefault((protocol, row.table), []).append(cells)
    return Section(
        "missing",
        "What is missing",
        "Rows with fewer trials than planned.",
        (
            Column("model", "model"),
            Column("protocol"),
            Column("table"),
            Column("dropout", "p", "number", digits=1),
            Column("trials", "trials", "count"),
            Column("planned", "planned", "count"),
            Column("state", "state", "badge"),
        ),
        tuple(
            Group(f"missing-{protocol}-{table}", f"{table}, protocol {protocol}", tuple(rows))
            for (protocol, table), rows in groups.items()
        ),
        empty="Nothing: every planned trial has been run.",
    )
