"""The tables of a comparison: all at a glance, every cell, the efficiency factors, the gains and what was chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....report.layout import Column, Group, Section
from .. import ALL_FAMILIES, FAMILIES, CellResult, Comparison, Task
from ..charts import example_charts, size_charts
from ..results import PAIRS
from .naming import FAMILY_NAMES, GAIN_NAMES, METRICS, anchor, title, verdict

__all__ = ["cells_section", "choices_section", "efficiency_section", "gains_section", "overview_section"]

FAMILY = Column("family", "family")
TASK = Column("task")
BUDGET = Column("budget", "budget", "count")
PARAMETERS = Column("parameters", "parameters", "count")
NOTHING = "No model has been judged on a test set yet."
NOT_A_TREE_GAIN = "A wiring gain is not a tree gain: it comes without any tree."


def overview_section(comparison: Comparison) -> Section:
    """Budgets x families with the gains: the whole result in one table a task."""
    judged = {result.cell.family for result in comparison.cells}
    families = [family for family in ALL_FAMILIES if family in FAMILIES or family in judged]
    gains = {(gain.task, gain.budget, gain.kind): gain for gain in comparison.gains}
    factors = {e.cell: (e.factor, e.bounds[0]) for e in comparison.efficiencies if e.cell.family == "tree"}

    def rows(task: Task) -> Iterator[tuple[Any, ...]]:
        scores = {(r.cell.family, r.cell.budget): r.spread.mean for r in comparison.cells if r.cell.task == task}
        factor = {cell.budget: value for cell, value in factors.items() if cell.task == task}
        for budget in sorted({size for _, size in scores if size}) or [0]:
            means = [scores.get((family, 0 if family == "linear" else budget)) for family in families]
            parts: list[float | None] = []
            for kind in ("tree", "wiring"):
                gain = gains.get((task, budget, kind))
                parts += [None, None] if gain is None else [gain.in_units[0], gain.p]
            yield (budget or None, task.name, METRICS[task.metric], *means, *parts, factor.get(budget))

    return Section(
        "overview",
        "At a glance",
        "Mean test score of every family at each parameter budget; linear models have one size. Tree gain: trees over"
        " sparse perceptrons with the same choice of wirings; wiring gain: sparse perceptrons over dense MLPs; in"
        " points of accuracy, or in % of the control's RMSE, and positive where it is better, with p values of Welch's"
        " test after Holm's correction. The factor says how many times the tree's parameters a dense MLP needs for the"
        f" same score. {NOT_A_TREE_GAIN}",
        (
            BUDGET,
            TASK,
            Column("metric"),
            *(Column(family, FAMILY_NAMES[family], "number", digits=4) for family in families),
            Column("tree_gain", "tree gain", "difference", digits=2),
            Column("tree_p", "p", "p", detail=True),
            Column("wiring_gain", "wiring gain", "difference", digits=2),
            Column("wiring_p", "p", "p", detail=True),
            Column("factor", "factor", "bounded"),
        ),
        _groups("overview", comparison.tasks, rows, metric=True),
        empty=NOTHING,
    )


def cells_section(comparison: Comparison) -> Section:
    """Every cell that was judged, with charts."""

    def rows(task: Task) -> Iterator[tuple[Any, ...]]:
        for result in _of(comparison.cells, task):
            yield (
                *_start(result),
                METRICS[task.metric],
                result.parameters,
                result.spread,
                result.interval,
                result.multiply_adds,
                result.seconds,
                result.searched,
                len(result.scores),
            )

    return Section(
        "cells",
        "Scores against parameters",
        "Mean over fresh seeds on the test set, with a band for its 95 % bootstrap interval. Sizes are on a logarithmic"
        " scale; on the axis of accuracies half the errors are the same step everywhere. Multiply-adds are those of one"
        " example. Several models were trained at once on the machine, so compare seconds with care.",
        (
            FAMILY,
            TASK,
            BUDGET,
            Column("metric"),
            PARAMETERS,
            Column("score", "score", "spread", digits=4),
            Column("interval", "95 % interval of the mean", "interval", digits=4),
            Column("multiply_adds", "multiply-adds", "count"),
            Column("seconds", "training, a model", "seconds"),
            Column("choices", "choices tried", "count"),
            Column("seeds", "seeds", "count"),
        ),
        _groups("cells", comparison.tasks, rows, metric=True),
        (*size_charts(comparison), *example_charts(comparison)),
        empty=NOTHING,
        brief=False,
    )


def efficiency_section(comparison: Comparison) -> Section:
    """How many times more parameters a dense MLP needs."""
    parameters = {result.cell: result.parameters for result in comparison.cells}

    def rows(task: Task) -> Iterator[tuple[Any, ...]]:
        for found in comparison.efficiencies:
            if found.cell.task == task:
                ends = zip((found.factor, found.low, found.high), found.bounds, strict=True)
                family = FAMILY_NAMES[found.cell.family]
                yield (family, task.name, found.cell.budget, parameters[found.cell], *ends)

    return Section(
        "efficiency",
        "Parameter-efficiency factor",
        "How many times more parameters a dense MLP needs for the same mean test score: between two sizes that were"
        " judged its score is a line over the logarithm of the parameters, and a larger MLP never counts as worse. The"
        " interval resamples the seeds of all cells. A > says that no dense MLP that was tried is as good, a < that"
        " even the smallest is better. The factor of trees has all that their wiring adds in it; that of sparse"
        " perceptrons is the wiring alone.",
        (
            FAMILY,
            TASK,
            BUDGET,
            PARAMETERS,
            Column("factor", "factor", "bounded"),
            Column("low", "95 % interval from", "bounded"),
            Column("high", "to", "bounded"),
        ),
        _groups("efficiency", comparison.tasks, rows),
        empty="A factor needs a dense MLP of two sizes or more, and trees or sparse perceptrons.",
        brief=False,
    )


def gains_section(comparison: Comparison) -> Section:
    """What the tree adds and what the wiring adds, whatever the sign."""
    kinds = list(PAIRS)

    def rows(task: Task) -> Iterator[tuple[Any, ...]]:
        found = [gain for gain in comparison.gains if gain.task == task]
        for gain in sorted(found, key=lambda gain: (gain.budget, kinds.index(gain.kind))):
            difference, *interval = gain.in_units
            start = (GAIN_NAMES[gain.kind], task.name, gain.kind, gain.budget, gain.unit)
            yield (*start, difference, tuple(interval), gain.test.p, gain.p, verdict(gain))

    return Section(
        "gains",
        "Tree gain and wiring gain",
        "Differences of mean test scores at the same budget, in points of accuracy or in % of the control's RMSE;"
        " positive is better. p values are Welch's, corrected by Holm's method over all gains of the kind; intervals"
        f" are not corrected. {NOT_A_TREE_GAIN}",
        (
            Column("what", "gain"),
            TASK,
            Column("kind"),
            BUDGET,
            Column("unit", "unit"),
            Column("gain", "ahead by", "difference", digits=2),
            Column("interval", "95 % interval", "interval", digits=2),
            Column("p"),
            Column("corrected_p", "p value", "p"),
            Column("verdict", "verdict", "badge"),
        ),
        _groups("gains", comparison.tasks, rows),
        empty="A gain needs two families at one budget.",
        brief=False,
    )


FIRST_OPTIONS = ("hidden", "branching", "wiring", "activation", "norm", "readout")
"""Options of models in the order they are read; whatever else there is follows."""
NOT_CHOSEN = ("in_features", "out_features", "output", "dropout")
"""Arguments of a model that have a column of their own, or none because the data decides."""


def choices_section(comparison: Comparison) -> Section:
    """What the search of each cell chose."""
    used = {name for result in comparison.cells for name in result.choice.config}
    options = [name for name in FIRST_OPTIONS if name in used]
    options += sorted(used - {*FIRST_OPTIONS, *NOT_CHOSEN})

    def rows(task: Task) -> Iterator[tuple[Any, ...]]:
        for result in _of(comparison.cells, task):
            choice = result.choice
            chosen = (_option(choice.config, name) for name in options)
            fitted = (choice.lr, choice.weight_decay, choice.rewired, choice.dropout)
            yield (*_start(result), choice.network, *fitted, *chosen)

    return Section(
        "choices",
        "What was chosen",
        "The best of the choices that were tried in each cell, by its score on validation.",
        (
            FAMILY,
            TASK,
            BUDGET,
            Column("model"),
            Column("lr", "learning rate", "number", digits=4),
            Column("weight_decay", "weight decay", "number", digits=2),
            Column("rewired", "synapses that move", "number", digits=2),
            Column("dropout", "dropout", "number", digits=2),
            *(Column(name, name.replace("_", " ")) for name in options),
        ),
        _groups("choices", comparison.tasks, rows),
        empty=NOTHING,
        brief=False,
    )


def _option(config: Mapping[str, Any], name: str) -> str | None:
    """An option as people read it.

    >>> _option({"branching": [25, 2]}, "branching")
    '25, 2'
    """
    value = config.get(name)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):  # a wiring
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        parts.pop("image_shape", None)  # the data's
        details = ", ".join(f"{key} {part}" for key, part in parts.items() if part is not None)
        return ": ".join(filter(None, [str(getattr(value, "name", type(value).__name__)), details]))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return None if value is None else str(value)


def _of(results: Iterable[CellResult], task: Task) -> list[CellResult]:
    return [result for result in results if result.cell.task == task]


def _start(result: CellResult) -> tuple[Any, ...]:
    return FAMILY_NAMES[result.cell.family], result.cell.task.name, result.cell.budget or None


def _groups(
    name: str, tasks: Sequence[Task], rows: Callable[[Task], Iterator[tuple[Any, ...]]], *, metric: bool = False
) -> tuple[Group, ...]:
    """A group a task that has rows."""
    groups = []
    for task in tasks:
        heading = f"{title(task)}: {METRICS[task.metric]}" if metric else title(task)
        groups.append(Group(f"{name}-{anchor(task)}", heading, tuple(rows(task))))
    return tuple(group for group in groups if group.rows)
