"""Charts of a comparison: scores against parameters, and against the number of training examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...report.chart import Chart, Line, Panel
from ...report.layout import anchor
from ..engine.task import Task
from .comparison_results import CellResult, Comparison
from .families import FAMILIES

METRICS = {"accuracy": "test accuracy", "rmse": "test RMSE"}
TRAINING_EXAMPLES = {
    "mnist": 50_000,
    "fashion-mnist": 50_000,
    "mnist-pairs": 50_000,
    "fashion-pairs": 50_000,
    "cifar10": 40_000,
    "mnist-4-9": 9_799,
    "digits": 1_197,
    "adult": 26_049,
    "california-housing": 12_384,
}
"""Training examples of each data set, for the axis of learning curves: a report must not need the data."""


def size_charts(comparison: Comparison) -> Iterator[Chart]:
    """One chart per task: the score of every family against its parameters."""
    for task in comparison.tasks:
        lines = []
        for family in FAMILIES:
            results = comparison.of(task, family)
            lines += _line(family, results, [result.parameters for result in results], level=family == "linear")
        if task.examples is not None and all(len(line.x) == 1 for line in lines):
            continue  # one budget of a learning curve, which has its own chart
        yield from _chart(task, f"sizes-{task.name}", task.title, "parameters", lines, "Score against parameters")


def example_charts(comparison: Comparison) -> Iterator[Chart]:
    """One chart per data set and budget that were run with several numbers of training examples."""
    for dataset in dict.fromkeys(task.dataset for task in comparison.tasks):
        tasks = [task for task in comparison.tasks if task.dataset == dataset]
        for budget in sorted({r.cell.budget for r in comparison.cells if r.cell.task in tasks and r.cell.budget}):
            lines = []
            for family in FAMILIES:
                wanted = 0 if family == "linear" else budget
                results = [r for task in tasks for r in comparison.of(task, family) if r.cell.budget == wanted]
                trained = [r.cell.task.examples or r.cell.task.trained for r in results]
                lines += _line(family, results, [count or TRAINING_EXAMPLES[dataset] for count in trained])
            if any(len(line.x) > 1 for line in lines if line.family != "linear"):
                name, heading = f"examples-{dataset}-{budget}", f"{dataset}, {budget:,} parameters"
                yield from _chart(tasks[0], name, heading, "training examples", lines, "Score against examples")


def _line(family: str, results: Sequence[CellResult], x: Sequence[int], *, level: bool = False) -> list[Line]:
    """The line of a family; empty if there is nothing to draw, such as for models that diverged."""
    points = sorted((at, r.spread.mean, *r.interval) for at, r in zip(x, results, strict=True))
    points = [point for point in points if math.isfinite(point[1])]
    if not points:
        return []
    at, mean, low, high = (tuple(map(float, values)) for values in zip(*points, strict=True))
    return [Line(FAMILIES[family].name, family, 0, at, mean, low, high, level=level)]


def _chart(task: Task, name: str, heading: str, x_label: str, lines: Sequence[Line], group: str) -> Iterator[Chart]:
    if not lines:
        return
    metric = METRICS[task.metric]
    yield Chart(
        name=anchor(name),
        title=heading,
        alt=f"Mean {metric} against {x_label}, {heading}: {', '.join(line.label for line in lines)};"
        " with bands for 95% bootstrap intervals over seeds.",
        x_label=x_label,
        panels=(Panel(metric, tuple(lines), scale="errors" if task.metric == "accuracy" else "linear"),),
        form="scaling",
        group=group,
    )
