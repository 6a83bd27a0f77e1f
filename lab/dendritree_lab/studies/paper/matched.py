"""Which rows are compared: a dendritic model and its controls, without dropout and each at its best dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .analysis import Comparison, Model, RowSummary, best_dropout
from .claims import Matches
from .paper_trials import PaperTrial
from .spec import PAPER, TASKS, TableRow


@dataclass(frozen=True)
class Match:
    """A dendritic row and the rows of its controls that were run."""

    protocol: str
    dropout: str
    """`none`, or `best`: each model at its own best dropout."""
    row: TableRow
    controls: tuple[TableRow, ...]


def reading_order(result: RowSummary | Comparison | PaperTrial | Match) -> tuple[bool, str, int, str]:
    """Sort key for display: the paper's protocol first, tasks in the paper's order.

    >>> reading_order(Match("full", "none", TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.0), ()))
    (True, 'full', 1, 'multiclass')
    """
    task = result.row.task
    return result.protocol != PAPER.name, result.protocol, TASKS.index(task) if task in TASKS else len(TASKS), task


def shown_rows(summaries: Sequence[RowSummary]) -> dict[str, dict[Model, TableRow]]:
    """Every model's row without dropout, under `none`, and at its best dropout, under `best`."""
    without = {summary.model: summary.row for summary in summaries if summary.row.dropout == 0.0}
    return {"none": without, "best": {model: best.row for model, best in best_dropout(summaries).items()}}


def matched_rows(summaries: Sequence[RowSummary], matches: Matches) -> list[Match]:
    """The matches by protocol, task, dropout and branching; without controls if none was run."""
    pairs = []
    for dropout, rows in shown_rows(summaries).items():
        for model, row in rows.items():
            if row.dendritic:
                paired = matches.get((model.task, model.size), ())
                controls = [rows.get(Model(model.protocol, model.task, *control)) for control in paired]
                pairs.append(Match(model.protocol, dropout, row, tuple(control for control in controls if control)))
    kinds = ("none", "best")
    return sorted(pairs, key=lambda m: (reading_order(m), kinds.index(m.dropout), m.row.size, m.row.network))


def family(row: TableRow) -> str:
    """The kind of model of a row, which determines its style in charts.

    >>> family(TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.3))
    'mlp'
    """
    if row.dendritic:
        return "dendritic"
    return "mlp" if row.size else "perceptrons"
