"""The charts of the report as data: learning curves, accuracy over a quantity, and the paper's numbers against ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...report.chart import Chart, Line, Panel
from ..engine.statistics import Spread
from .analysis import Model, RowSummary, by_row
from .matched import Match, family
from .paper_trials import PaperTrial
from .spec import TableRow

QUANTITIES = (("accuracy", "train_acc", "val_acc"), ("loss", "train_loss", "val_loss"))


def mean_curve(trials: Sequence[PaperTrial], curve: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sample standard deviation over trials, per epoch; the deviation of a single trial is NaN.

    >>> row, accuracies = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0), ([0.5, 0.6], [0.5, 1.6])
    >>> trials = [PaperTrial.make("paper", row, 0, 0, "mnist", 0.001, 9, 0.1, {"val_acc": each}) for each in accuracies]
    >>> [values.round(2).tolist() for values in mean_curve(trials, "val_acc")]
    [[0.5, 1.1], [0.0, 0.71]]
    """
    epochs = min(len(trial.curves[curve]) for trial in trials)
    values = np.array([trial.curves[curve][:epochs] for trial in trials], dtype=np.float64)  # (trials, epochs)
    with np.errstate(invalid="ignore", over="ignore"):  # a diverged trial has infinite losses
        mean = values.mean(axis=0)
        sd = values.std(axis=0, ddof=1) if len(trials) > 1 else np.full(epochs, np.nan)
    return mean, sd


def learning_curves(trials: Iterable[PaperTrial], matches: Iterable[Match]) -> list[Chart]:
    """A chart for each match: the dendritic model and its controls. The charts of one task share their axes."""
    groups, tasks = by_row(trials), dict[str, list[Chart]]()
    for match in matches:
        chart = _chart(match, [(row, groups[match.protocol, row]) for row in (match.row, *match.controls)])
        tasks.setdefault(chart.group, []).append(chart)
    return [chart for charts in tasks.values() for chart in _with_common_limits(charts)]


def _with_common_limits(charts: Sequence[Chart]) -> Iterable[Chart]:
    """The charts with a common y axis, so that they can be compared visually."""
    limits = {}
    for quantity, _, _ in QUANTITIES:
        lines = [
            line for chart in charts for panel in chart.panels if panel.y_label == quantity for line in panel.lines
        ]
        values = np.array([value for line in lines for value in (*line.y, *line.low, *line.high)])
        values = values[np.isfinite(values)]
        if quantity == "accuracy":
            values = values.clip(0, 1)  # a band may exceed the range of an accuracy
        if len(values) and values.max() > values.min():
            margin = 0.03 * (values.max() - values.min())
            limits[quantity] = (float(values.min() - margin), float(values.max() + margin))
    for chart in charts:
        yield replace(chart, panels=tuple(replace(p, limits=limits.get(p.y_label)) for p in chart.panels))


def _chart(match: Match, drawn: Sequence[tuple[TableRow, list[PaperTrial]]]) -> Chart:
    row, protocol = match.row, match.protocol
    dropout = "without dropout" if match.dropout == "none" else "best dropout"
    panels = tuple(
        Panel(quantity, tuple(line for of, trials in drawn for line in _lines(of, trials, train, validation)))
        for quantity, train, validation in QUANTITIES
    )
    others = [control.model for control in match.controls]
    controls = f" and {' and '.join(others)}" if others else ""
    return Chart(
        name=f"curves-{protocol}-{row.task}-b{row.size}-{match.dropout}",
        title=f"b={row.size} and controls, {dropout}" if others else f"b={row.size}, {dropout}",
        alt=f"Learning curves of {row.model}{controls}, task {row.task}, protocol {protocol}, {dropout}:"
        " mean accuracy and loss of each epoch, with a band of one standard deviation around the validation curve.",
        x_label="epoch",
        panels=panels,
        group=f"{row.task}, protocol {protocol}",
    )


def _lines(row: TableRow, trials: Sequence[PaperTrial], train: str, validation: str) -> Iterable[Line]:
    """The validation curve with its band, and the training curve."""
    label = f"{row.model}, p={row.dropout:g}" if row.dropout else row.model
    look = {"family": family(row), "size": row.size}
    mean, sd = mean_curve(trials, validation)
    epochs = tuple(float(epoch) for epoch in range(len(mean)))  # the first is 0, as in the store
    band = {"low": tuple((mean - sd).tolist()), "high": tuple((mean + sd).tolist())} if len(trials) > 1 else {}
    yield Line(label, x=epochs, y=tuple(mean.tolist()), **look, **band)  # type: ignore[arg-type]
    mean, _ = mean_curve(trials, train)
    yield Line(label, x=epochs, y=tuple(mean.tolist()), faint=True, **look)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- accuracy of many rows

MEASURES = {"val_acc": "validation accuracy", "test_acc": "test accuracy", "gap": "training minus validation accuracy"}


def measure_of(summary: RowSummary) -> str:
    """What `summary.accuracy` is."""
    return MEASURES["val_acc" if summary.test_acc is None else "test_acc"]


def charts_by_task(
    name: str, x_label: str, form: str, summaries: Sequence[RowSummary], x_of: Callable[[RowSummary], float]
) -> list[Chart]:
    """One chart per task: every model's mean accuracy over x, with the interval of the mean."""
    tasks: dict[tuple[str, str], dict[Model, list[RowSummary]]] = defaultdict(lambda: defaultdict(list))
    for summary in summaries:
        tasks[summary.protocol, summary.row.task][summary.model].append(summary)
    charts = []
    for (protocol, task), models in tasks.items():
        lines = tuple(_line(sorted(rows, key=x_of), x_of) for rows in models.values())
        measure = measure_of(next(iter(models.values()))[0])
        charts.append(
            Chart(
                name=f"{name}-chart-{protocol}-{task}",
                title=f"{task}, protocol {protocol}",
                alt=f"Mean {measure} against {x_label} of {len(lines)} models, task {task}, protocol"
                f" {protocol}, with 95% intervals: {', '.join(line.label for line in lines)}.",
                x_label=x_label,
                panels=(Panel(measure, lines),),
                form=form,
            )
        )
    return charts


def _line(rows: Sequence[RowSummary], x_of: Callable[[RowSummary], float]) -> Line:
    row = rows[0].row
    points = [(x_of(summary), summary.accuracy.mean, *summary.interval) for summary in rows]
    x, y, low, high = zip(*points, strict=True)
    return Line(row.model, family(row), row.size, x, y, low, high)


KINDS = {
    (True, False): ("trees", "tree"),
    (False, False): ("MLPs", "dense"),
    (True, True): ("CNN and trees", "deep"),
    (False, True): ("CNN and MLPs", "cnn"),
}
"""Label and style of rows, by whether they are dendritic and have a CNN."""


def agreement_chart(
    name: str, title: str, bars: str, points: Sequence[tuple[TableRow, Spread, float, float, float]]
) -> Chart:
    """A chart of rows: the paper's value, and ours with the ends of its bar."""
    lines = []
    for (dendritic, cnn), (label, look) in KINDS.items():
        chosen = [each for each in points if each[0].dendritic == dendritic and (each[0].task == "cnn") == cnn]
        if chosen:
            _, papers, y, low, high = zip(*chosen, strict=True)
            x, left, right = (tuple(paper.mean + sign * paper.sd for paper in papers) for sign in (0, -1, 1))
            lines.append(Line(label, look, 0, x, y, low, high, left, right))
    alt = f"Mean validation accuracy of {len(points)} rows, ours against the paper's, {bars}; equal on the diagonal."
    panel = Panel("validation accuracy, ours", tuple(lines))
    return Chart(name, title, alt, "validation accuracy, paper", (panel,), form="agreement")
