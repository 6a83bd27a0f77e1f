"""The paper's tables beside ours, row by row, and our own rows below them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ....report.layout import Column, Group, Section
from ...engine.records import Row
from ..analysis import PaperRow, RowSummary
from .matched import PAPER

__all__ = ["paper_section"]

AGREEMENT = {True: "within", False: "outside", None: "one trial"}
"""In words; None where there is no deviation to judge by."""


def paper_section(rows: Sequence[PaperRow], summaries: Sequence[RowSummary], shown: Collection[Row]) -> Section:
    """The paper's numbers beside ours, table by table; then our own rows, which the paper does not have."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(row.expected.row.table, []).append(_printed(row))
    printed = {(row.expected.row.task, row.expected.row.network, row.expected.row.size) for row in rows}
    for ours in summaries:
        if ours.protocol == PAPER and ours.model[1:] not in printed and ours.row in shown:
            groups.setdefault(ours.row.table, []).append(_our_own(ours))
    return Section(
        "paper",
        "The paper's tables and ours",
        "Mean accuracy and sample standard deviation over trials, at each trial's best epoch by validation loss, with"
        " the dropout p of the paper's row. A row is within if the means of the validation accuracy differ by no more"
        " than the tolerance, twice the root of the summed squares of both deviations. Rows that are not in the paper"
        " are shown without dropout and at their best dropout.",
        (
            Column("model", "model"),
            Column("table"),
            Column("task"),
            Column("dropout", "p", "number", digits=1),
            Column("paper_val_acc", "val., paper", "spread", digits=2),
            Column("val_acc", "val., ours", "spread"),
            Column("difference", "difference", "difference"),
            Column("tolerance", "tolerance", "number", detail=True),
            Column("state", "agreement", "badge"),
            Column("paper_train_acc", "train, paper", "spread", digits=2, detail=True),
            Column("train_acc", "train, ours", "spread", detail=True),
            Column("trials", "trials", "count", detail=True),
            Column("parameters", "parameters", "count", detail=True),
        ),
        tuple(Group(f"paper-{table}", table, tuple(lines)) for table, lines in groups.items()),
        empty="The paper's numbers are not at hand.",
    )


def _printed(row: PaperRow) -> tuple[Any, ...]:
    """A row of the paper."""
    expected, ours = row.expected, row.ours
    state = AGREEMENT[row.within] if ours else "not run"
    return (
        expected.row.model,
        expected.row.table,
        expected.row.task,
        expected.row.dropout,
        expected.val_acc,
        ours.val_acc if ours else None,
        row.difference,
        row.tolerance,
        state,
        expected.train_acc,
        ours.train_acc if ours else None,
        ours.n if ours else 0,
        ours.parameters if ours else None,
    )


def _our_own(ours: RowSummary) -> tuple[Any, ...]:
    """A row that the paper does not have."""
    return (
        ours.row.model,
        ours.row.table,
        ours.row.task,
        ours.row.dropout,
        None,
        ours.val_acc,
        None,
        None,
        "not in the paper",
        None,
        ours.train_acc,
        ours.n,
        ours.parameters,
    )
