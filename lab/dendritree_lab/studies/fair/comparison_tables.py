"""The tables of a comparison: an overview, every cell, the efficiency factors, the gains and the configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from dendritree.wiring import Wiring

from ...report.layout import Column, Section
from ..engine.task import Task
from ..engine.trial import SEARCH, TEST, Trial
from .advice import IN_WORDS, Answer
from .comparison_plan import ComparisonCell, ComparisonPlan
from .comparison_results import GAINS, Comparison, reading_order
from .families import FAMILIES, OURS
from .score_charts import METRICS, example_charts, size_charts

FAMILY = Column("family", "family", value="cell.name")
TASK = Column("task", value="cell.task.name")
BUDGET = Column("budget", "budget", "count", value=lambda of: of.cell.budget or None)
NOTHING = "No model has been evaluated on a test set yet."
NOT_A_TREE_GAIN = "A wiring gain is not a tree gain: it comes without any tree."


def _by_task(item: Any) -> tuple[str, str]:
    task = item.cell.task if hasattr(item, "cell") else item.task
    return task.name, task.title


def _with_metric(task: Task) -> tuple[str, str]:
    return task.name, f"{task.title}: {METRICS[task.metric]}"


SHOWN_GAINS = {
    "deep-cnn": "over a CNN",
    "deep-tree": "over linear dendrites",
    "tree": "tree gain",
    "wiring": "wiring gain",
}
"""Gains in the overview, and the heads of their columns."""


def overview_section(comparison: Comparison) -> Section:
    """Budgets x families with the gains: the whole result in one table per task."""
    evaluated = {result.cell.family for result in comparison.cells}
    families = [family for family in FAMILIES if family in (evaluated or OURS)]
    kinds = {gain.kind for gain in comparison.gains}
    shown = [(kind, title) for kind, title in SHOWN_GAINS.items() if kind in kinds]
    gains = {(gain.task, gain.budget, gain.kind): gain for gain in comparison.gains}
    factors = {e.cell: (e.factor, e.bounds[0]) for e in comparison.efficiencies}
    means = {result.cell: result.spread.mean for result in comparison.cells}
    lines = []
    for task in comparison.tasks:
        for budget in sorted({cell.budget for cell in means if cell.task == task and cell.budget}) or [0]:
            line: dict[str, Any] = {"task": task.name, "metric": METRICS[task.metric], "budget": budget or None}
            line |= {f: means.get(ComparisonCell(task, 0 if f == "linear" else budget, f)) for f in families}
            ours = "tree" if task.image_shape is None or "deep" not in evaluated else "deep"
            line |= {"factor": factors.get(ComparisonCell(task, budget, ours)), "group": _with_metric(task)}
            for kind, _ in shown:
                if (gain := gains.get((task, budget, kind))) is not None:
                    line |= {f"{kind}_gain": gain.in_units.mean, f"{kind}_p": gain.test.p}
            lines.append(line)
    return Section.of(
        "overview",
        "At a glance",
        "Mean test score of every family at each parameter budget; linear models have one size. Gains are in points of"
        " accuracy or in % of the control's RMSE; positive is better. p values are those of Welch's test after Holm's"
        " correction. Over a CNN: the gain of deep dendritic networks over CNNs. Over linear dendrites: what nonlinear"
        " ones add. Tree gain: trees over sparse perceptrons with the same set of wirings. Wiring gain: sparse"
        " perceptrons over dense MLPs. The factor says how many times as many parameters a dense MLP needs to match"
        f" the deep network, or the trees. {NOT_A_TREE_GAIN}",
        (
            Column("budget", "budget", "count"),
            Column("task"),
            Column("metric"),
            *(Column(family, FAMILIES[family].name, "number", digits=4) for family in families),
            *(
                column
                for kind, title in shown
                for column in (
                    Column(f"{kind}_gain", title, "difference", digits=2),
                    Column(f"{kind}_p", "p", "p", detail=True),
                )
            ),
            Column("factor", "factor", "bounded"),
        ),
        lines,
        by=itemgetter("group"),
        empty=NOTHING,
    )


def answers_section(answers: Sequence[Answer]) -> Section:
    """The recommended model for each data set, and the line of code that builds it."""

    def size(family: str) -> Column:
        label = f"{FAMILIES[family].name}, parameters"
        return Column(family, label, value=lambda answer: answer.shown_size(family))

    return Section.of(
        "answers",
        "What to use",
        "The best mean test score that all these families reach, and the parameters each needs"
        " for it (< means that its smallest model is already better); then the smallest model whose mean score is"
        " within one standard error of the best one's. Scale its inputs as in `load_dataset(...).scaled()`.",
        (
            Column("task", "data", value="task.name"),
            Column("score", "score of all", "number", digits=4),
            *(size(family) for family in IN_WORDS if any(family in answer.sizes for answer in answers)),
            Column("use", "use", value="use.cell.name"),
            Column("parameters", "its parameters", "count", value="use.parameters"),
            Column("code", "code"),
        ),
        answers,
        empty=NOTHING,
        brief=False,
    )


def cells_section(comparison: Comparison) -> Section:
    """Every cell that was evaluated, with charts."""
    return Section.of(
        "cells",
        "Scores against parameters",
        "Mean test score over fresh seeds, with a band for its 95% bootstrap interval. Sizes are on a logarithmic"
        " scale; on the accuracy axis, halving the error is the same distance everywhere. Multiply-adds are per"
        " example. Several models were trained at once on the machine, so compare seconds with care. The expected best"
        " is the validation score that a search of as many configurations reaches on average, with its standard"
        " deviation, estimated from all configurations that were tried (Dodge et al. 2019).",
        (
            FAMILY,
            TASK,
            BUDGET,
            Column("metric", value=lambda of: METRICS[of.cell.task.metric]),
            Column("parameters", "parameters", "count"),
            Column("score", "score", "spread", digits=4, value="spread"),
            Column("interval", "95% interval of the mean", "interval", digits=4),
            Column("multiply_adds", "multiply-adds", "count"),
            Column("seconds", "training, per model", "seconds"),
            Column("configurations", "configurations tried", "count", value=lambda of: len(of.searched)),
            Column("expected_best", "expected best, validation", "spread", digits=4),
            Column("seeds", "seeds", "count", value=lambda of: len(of.scores)),
        ),
        comparison.cells,
        by=lambda of: _with_metric(of.cell.task),
        charts=(*size_charts(comparison), *example_charts(comparison)),
        empty=NOTHING,
        brief=False,
    )


def efficiency_section(comparison: Comparison) -> Section:
    """How many times more parameters a dense MLP needs."""
    parameters = {result.cell: result.parameters for result in comparison.cells}
    return Section.of(
        "efficiency",
        "Parameter-efficiency factor",
        "How many times more parameters a dense MLP needs for the same mean test score: between two sizes that were"
        " evaluated, its score is interpolated linearly in the logarithm of the parameters, and a larger MLP never"
        " counts as worse. The interval resamples the seeds of all cells. > means that no dense MLP that was tried is"
        " as good, < that even the smallest is better. The factor of trees includes the effect of their wiring; that"
        " of sparse perceptrons is due to the wiring alone.",
        (
            FAMILY,
            TASK,
            BUDGET,
            Column("parameters", "parameters", "count", value=lambda of: parameters[of.cell]),
            Column("factor", "factor", "bounded", value=lambda of: (of.factor, of.bounds[0])),
            Column("low", "95% interval from", "bounded", value=lambda of: (of.low, of.bounds[1])),
            Column("high", "to", "bounded", value=lambda of: (of.high, of.bounds[2])),
        ),
        comparison.efficiencies,
        by=_by_task,
        empty="A factor needs dense MLPs of two or more sizes, and another family.",
        brief=False,
    )


def gains_section(comparison: Comparison) -> Section:
    """What the tree adds and what the wiring adds, whether positive or negative."""
    kinds, tasks = list(GAINS), comparison.tasks
    return Section.of(
        "gains",
        "Tree gain and wiring gain",
        "Differences of mean test scores at the same budget, in points of accuracy or in % of the control's RMSE;"
        " positive is better. p values are Welch's, corrected by Holm's method over all gains of the kind; intervals"
        " are not corrected. Both include the noise of the two searches, the standard deviation of the best of as many"
        f" configurations drawn again from those that were tried. {NOT_A_TREE_GAIN}",
        (
            Column("what", "gain", value=lambda gain: GAINS[gain.kind].name),
            Column("task", value="task.name"),
            Column("kind"),
            Column("budget", "budget", "count"),
            Column("unit", "unit"),
            Column("gain", "ahead by", "difference", digits=2, value="in_units.mean"),
            Column(
                "interval", "95% interval", "interval", digits=2, value=lambda of: (of.in_units.low, of.in_units.high)
            ),
            Column("p", value="raw_p"),
            Column("corrected_p", "p value", "p", value="test.p"),
            Column("verdict", "verdict", "badge", value="test.state"),
        ),
        sorted(comparison.gains, key=lambda of: (tasks.index(of.task), of.budget, kinds.index(of.kind))),
        by=_by_task,
        empty="A gain needs two families at one budget.",
        brief=False,
    )


FIRST_OPTIONS = ("hidden", "branching", "wiring", "activation", "norm", "readout")
"""Model options in display order; all others follow."""
NOT_SEARCHED = ("in_features", "out_features", "output", "dropout")
"""Arguments of a model that have their own column, or no column because the data determines them."""


def configurations_section(comparison: Comparison) -> Section:
    """The best configuration of each cell's search."""
    used = {name for result in comparison.cells for name in result.configuration.arguments}
    options = [name for name in FIRST_OPTIONS if name in used]
    options += sorted(used - {*FIRST_OPTIONS, *NOT_SEARCHED})

    def option(name: str) -> Column:
        return Column(name, name.replace("_", " "), value=lambda of: shown_option(of.configuration.arguments.get(name)))

    return Section.of(
        "configurations",
        "The best configurations",
        "The configuration with the best validation score in each cell.",
        (
            FAMILY,
            TASK,
            BUDGET,
            Column("model", value="configuration.network"),
            Column("lr", "learning rate", "number", digits=4, value="configuration.lr"),
            Column("weight_decay", "weight decay", "number", digits=2, value="configuration.weight_decay"),
            Column("rewired", "rewired synapses", "number", digits=2, value="configuration.rewired"),
            Column("dropout", "dropout", "number", digits=2, value="configuration.dropout"),
            *map(option, options),
        ),
        comparison.cells,
        by=_by_task,
        empty=NOTHING,
        brief=False,
    )


def shown_option(value: Any) -> str | None:
    """A readable form of an option.

    >>> shown_option([25, 2])
    '25, 2'
    """
    if isinstance(value, Wiring):
        parts = {name: part for name, part in vars(value).items() if part is not None and name != "image_shape"}
        return ": ".join(filter(None, [value.name, ", ".join(f"{name} {part}" for name, part in parts.items())]))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return None if value is None else str(value)


# --------------------------------------------------------------------------------------------------------- coverage


@dataclass(frozen=True)
class Coverage:
    """How much of a task has been done."""

    task: Task
    cells: int
    """Number of cells: families at budgets."""
    searched: int
    """Cells with all configurations tried."""
    evaluated: int
    """Cells whose best configuration was evaluated on the test set, with all seeds."""
    trials: int
    """Number of trials so far, of searches and tests."""

    @property
    def state(self) -> str:
        """`complete`, `partial` or `not started`."""
        return "not started" if not self.trials else "complete" if self.evaluated == self.cells else "partial"


def coverage(
    trials: Sequence[Trial],
    searched: int,
    plan: ComparisonPlan | None = None,
    tasks: Mapping[str, Task] = MappingProxyType({}),
) -> list[Coverage]:
    """How much of each task has been done.

    Args:
        trials: all trials of the run.
        searched: the number of configurations in a search.
        plan: what the complete run contains; by default, the cells that were started. Cells outside the plan count too.
            A cell should have as many seeds as the plan says, or as the cell with the most.
        tasks: the tasks of the user's own data, by name.
    """
    done = Counter((trial.key["phase"], ComparisonCell.of(trial, tasks)) for trial in trials)
    planned = () if plan is None else plan.cells
    cells = sorted({*planned, *(cell for _, cell in done)}, key=reading_order)
    seeds = max((n for (phase, _), n in done.items() if phase == TEST), default=1) if plan is None else plan.seeds
    result = []
    for task in dict.fromkeys(cell.task for cell in cells):
        searches, tests = ([done[phase, cell] for cell in cells if cell.task == task] for phase in (SEARCH, TEST))
        complete = sum(count >= searched for count in searches), sum(count >= seeds for count in tests)
        result.append(Coverage(task, len(tests), *complete, sum(searches) + sum(tests)))
    return result


def coverage_section(tasks: Sequence[Coverage], config: Mapping[str, Any]) -> Section:
    """The rule by which all families were compared, and how much of the comparison is complete."""
    low, high = config["learning_rates"]
    return Section.of(
        "coverage",
        "How the models were compared, and how much is complete",
        f"A cell is a family of models at a parameter budget on a data set. In every cell, {config['trials']} random"
        f" configurations were tried (learning rate from {low:g} to {high:g}, dropout and the whole architecture, as"
        f" wide as the budget allows), with one optimizer and schedule, batches of {config['batch_size']}, for about"
        f" {config['steps']:,} steps. The best one on validation was trained again with fresh seeds for"
        f" about {config['test_steps']:,} steps, and each of these models was evaluated on the test set once.",
        (
            Column("task", "data", value="task.title"),
            Column("cells", "cells", "count"),
            Column("searched", "searched", "count"),
            Column("evaluated", "evaluated", "count"),
            Column("trials", "trials", "count"),
            Column("state", "state", "badge"),
        ),
        tasks,
        brief=False,
    )
