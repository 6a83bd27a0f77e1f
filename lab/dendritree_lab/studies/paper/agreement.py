"""How our rows differ from the paper's: by test, by sign, and where the paper's values fall among several draws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..engine.statistics import Difference, Spread, one_more, spread, welch_of
from .analysis import PaperRow, without_table
from .expected import ExpectedRow
from .protocol import TRIALS_OF_A_DRAW
from .records import TrialRecord

PAPER_TRIALS = 10
"""Trials per row of the paper."""


def paper_difference(row: PaperRow) -> Difference | None:
    """Welch's test of our mean against the paper's, from means and standard deviations; None if either is missing.

    It assumes that all trials are independent. The paper's are not: those of a task share one draw of images, so their
    standard deviations do not include the variation between draws, and the errors of its rows are correlated.
    """
    if row.ours is None or row.expected is None or math.isnan(row.ours.val_acc.sd):
        return None
    return welch_of(row.ours.val_acc, row.expected.val_acc, (row.ours.n, PAPER_TRIALS))


def signs(rows: Iterable[PaperRow]) -> dict[str, tuple[int, int]]:
    """For each table, in how many rows our mean is below the paper's, and how many rows there are."""
    below: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.difference is not None:
            below[row.row.table].append(row.difference < 0)
    return {table: (sum(each), len(each)) for table, each in below.items()}


@dataclass(frozen=True)
class DrawnRow:
    """A row of the paper, which has one draw of images, and our means for several draws."""

    expected: ExpectedRow
    means: tuple[float, ...]
    """Mean validation accuracy of each draw's trials, in the order of the draws."""

    @property
    def rank(self) -> int:
        """How many draws are below the paper's value; draws that equal it count half, rounded down.

        >>> from dendritree_lab.studies.paper.records import Row
        >>> row = ExpectedRow(Row("t", "multiclass", "mln", 2, 0.0), "", Spread(1.0, 0.0), Spread(0.5, 0.1))
        >>> DrawnRow(row, (0.4, 0.45, 0.6)).rank
        2
        """
        paper = self.expected.val_acc.mean
        return sum(mean < paper for mean in self.means) + sum(mean == paper for mean in self.means) // 2

    @property
    def spread(self) -> Spread:
        """Mean and standard deviation of the draws' means."""
        return spread(self.means)

    @property
    def test(self) -> Difference:
        """Test of whether the paper's value could come from one more draw: our mean minus the paper's value."""
        return one_more(self.means, self.expected.val_acc.mean)

    @property
    def inside(self) -> bool:
        """Whether the paper's value is between the lowest and the highest draw."""
        return min(self.means) <= self.expected.val_acc.mean <= max(self.means)


@dataclass(frozen=True)
class Gap:
    """How far trees are ahead of their controls in a task, over all rows: the variation between draws cancels."""

    task: str
    paper: float
    ours: tuple[float, ...]
    """The gap of each draw."""

    @property
    def test(self) -> Difference:
        """Test of whether the paper's gap could come from one more draw."""
        return one_more(self.ours, self.paper)


def gaps(rows: Sequence[DrawnRow]) -> list[Gap]:
    """The gap of each task, from the rows for which all draws were run."""
    most = max((len(row.means) for row in rows), default=0)
    found = []
    for task in dict.fromkeys(row.expected.row.task for row in rows):
        whole = [row for row in rows if row.expected.row.task == task and len(row.means) == most]
        kinds = [[row for row in whole if row.expected.row.dendritic == dendritic] for dendritic in (True, False)]
        if all(kinds):
            trees, controls = (
                [fmean(draw) for draw in zip(*(row.means for row in kind), strict=True)] for kind in kinds
            )
            paper = [fmean(row.expected.val_acc.mean for row in kind) for kind in kinds]
            ours = tuple(tree - control for tree, control in zip(trees, controls, strict=True))
            found.append(Gap(task, paper[0] - paper[1], ours))
    return found


def among_draws(records: Iterable[TrialRecord], expected: Sequence[ExpectedRow]) -> list[DrawnRow]:
    """The paper's rows among our draws, for a run with several draws; rows with fewer than three draws are skipped."""
    draws: Mapping[tuple[str, str, int, float], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        draw = record.index // TRIALS_OF_A_DRAW
        draws[without_table(record.row)][draw].append(record.at_best("val_acc"))
    found = []
    for row in expected:
        by_number = sorted(draws[without_table(row.row)].items())
        whole = [each for _, each in by_number if len(each) == TRIALS_OF_A_DRAW]
        if len(whole) >= 3:
            found.append(DrawnRow(row, tuple(fmean(each) for each in whole)))
    return found
