"""How much of a comparison is there: cells searched and judged, out of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....report.layout import Column, Group, Section
from ...engine.records import TrialRecord
from .. import Cell, ComparisonPlan, Task
from ..results import cell_of, reading_order
from ..trials import SEARCH, TEST
from .naming import title

__all__ = ["Coverage", "coverage", "coverage_section"]


@dataclass(frozen=True)
class Coverage:
    """What was done of a task."""

    task: Task
    cells: int
    """That there are: families at budgets."""
    searched: int
    """With all choices tried."""
    judged: int
    """With models of the best choice judged on the test set, all their seeds."""
    trials: int
    """Of searches and tests, whatever has been done."""
    seeds: tuple[int, int]
    """The fewest and the most of the cells that have any; zeros if none has."""

    @property
    def state(self) -> str:
        """`whole`, `partial` or `not begun`."""
        return "not begun" if not self.trials else "whole" if self.judged == self.cells else "partial"


def coverage(records: Sequence[TrialRecord], trials: int, plan: ComparisonPlan | None = None) -> list[Coverage]:
    """What was done of each task.

    Args:
        records: all trials of the run.
        trials: choices that a search tries.
        plan: what is to be done; by default all data sets at their own budgets. Cells begun beyond it count too. A
            cell is to have as many seeds as the plan says, or as the cell that has most.
    """
    done = Counter((record.protocol, cell_of(record)) for record in records)
    planned = (ComparisonPlan.make() if plan is None else plan).cells
    cells = sorted({*planned, *(cell for _, cell in done)}, key=reading_order)
    tests = {cell: count for (phase, cell), count in done.items() if phase == TEST}
    seeds = max(tests.values(), default=1) if plan is None else plan.seeds
    return [
        _of_task(task, [cell for cell in cells if cell.task == task], done, trials, seeds)
        for task in dict.fromkeys(cell.task for cell in cells)
    ]


def _of_task(
    task: Task, cells: Sequence[Cell], done: Mapping[tuple[str, Cell], int], trials: int, seeds: int
) -> Coverage:
    searched = [done.get((SEARCH, cell), 0) for cell in cells]
    tested = [done.get((TEST, cell), 0) for cell in cells]
    some = [count for count in tested if count] or [0]
    return Coverage(
        task,
        cells=len(cells),
        searched=sum(count >= trials for count in searched),
        judged=sum(count >= seeds for count in tested),
        trials=sum(searched) + sum(tested),
        seeds=(min(some), max(some)),
    )


def coverage_section(found: Sequence[Coverage], config: Mapping[str, Any]) -> Section:
    """The rule that all families were compared by, and how much of the comparison is there."""
    low, high = config["learning_rates"]
    rows = tuple(
        (title(of.task), of.cells, of.searched, of.judged, of.trials, _seeds(of.seeds), of.state) for of in found
    )
    return Section(
        "coverage",
        "How it was compared, and how much of it is there",
        f"A cell is a family of models at a parameter budget on a data set. In every cell {config['trials']} random"
        f" choices were tried (learning rate from {low:g} to {high:g}, dropout and all the architecture, as wide as the"
        f" budget allows), with one optimiser and schedule, batches of {config['batch_size']}, for about"
        f" {config['steps']:,} steps. The choice that was best on validation was trained again with fresh seeds for"
        f" about {config['test_steps']:,} steps, and each of these models was judged on the test set once.",
        (
            Column("task", "data"),
            Column("cells", "cells", "count"),
            Column("searched", "searched", "count"),
            Column("judged", "judged", "count"),
            Column("trials", "trials", "count"),
            Column("seeds", "seeds"),
            Column("state", "state", "badge"),
        ),
        (Group("coverage-table", "", rows),),
        brief=False,
    )


def _seeds(ends: tuple[int, int]) -> str | None:
    if not ends[1]:
        return None
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
