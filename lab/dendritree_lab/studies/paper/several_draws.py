"""Where the paper's values, which come from one draw of images, fall among several draws of ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ...report.layout import Column, Section
from ..engine.statistics import Difference, Spread, one_more, spread
from .analysis import ExpectedRow, without_table
from .paper_charts import agreement_chart
from .paper_trials import PaperTrial
from .spec import TRIALS_OF_A_DRAW


@dataclass(frozen=True)
class DrawnRow:
    """A row of the paper, which has one draw of images, and our means for several draws."""

    expected: ExpectedRow
    means: tuple[float, ...]
    """Mean validation accuracy of each draw's trials, in the order of the draws."""

    @property
    def rank(self) -> int:
        """How many draws are below the paper's value; draws that equal it count half, rounded down.

        >>> from dendritree_lab.studies.paper.spec import TableRow
        >>> row = TableRow("t", "multiclass", "mln", 2, 0.0)
        >>> DrawnRow(ExpectedRow(row, Spread(1.0, 0.0), Spread(0.5, 0.1)), (0.4, 0.45, 0.6)).rank
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
    result = []
    for task in dict.fromkeys(row.expected.row.task for row in rows):
        whole = [row for row in rows if row.expected.row.task == task and len(row.means) == most]
        kinds = [[row for row in whole if row.expected.row.dendritic == dendritic] for dendritic in (True, False)]
        if all(kinds):
            trees, controls = (
                [fmean(draw) for draw in zip(*(row.means for row in kind), strict=True)] for kind in kinds
            )
            paper = [fmean(row.expected.val_acc.mean for row in kind) for kind in kinds]
            ours = tuple(tree - control for tree, control in zip(trees, controls, strict=True))
            result.append(Gap(task, paper[0] - paper[1], ours))
    return result


def among_draws(trials: Iterable[PaperTrial], expected: Sequence[ExpectedRow]) -> list[DrawnRow]:
    """The paper's rows among our draws, for a run with several draws; rows with fewer than three draws are skipped."""
    draws: Mapping[tuple[str, str, int, float], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        draw = trial.index // TRIALS_OF_A_DRAW
        draws[without_table(trial.row)][draw].append(trial.at_best("val_acc"))
    result = []
    for row in expected:
        by_number = sorted(draws[without_table(row.row)].items())
        whole = [each for _, each in by_number if len(each) == TRIALS_OF_A_DRAW]
        if len(whole) >= 3:
            result.append(DrawnRow(row, tuple(fmean(each) for each in whole)))
    return result


def draws_section(rows: Sequence[DrawnRow]) -> Section:
    """Where the paper's values fall among several draws of images."""
    points = [(row.expected.row, row.expected.val_acc, row.spread.mean, min(row.means), max(row.means)) for row in rows]
    bars = "bars from the lowest to the highest of our draws, and of one standard deviation in the paper"
    chart = agreement_chart("draws-chart", f"Paper against our {len(rows[0].means)} draws", bars, points)
    return Section.of(
        "draws",
        "The paper's draw among ours",
        "The authors trained all trials of a task on one draw of images. Here every row was repeated with several"
        " draws, ten trials each. The paper's value is inside if it is between the lowest and the highest mean of a"
        " draw; the p value, uncorrected, tests whether it could come from one more draw (Student's test). Rows"
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
