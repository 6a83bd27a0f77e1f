"""Learning curves as data: a dendritic model and its controls, mean and spread over trials per epoch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...report.chart import Chart, Line, Panel
from .analysis import by_row
from .matched import Match, family
from .records import Row, TrialRecord

QUANTITIES = (("accuracy", "train_acc", "val_acc"), ("loss", "train_loss", "val_loss"))


def mean_curve(trials: Sequence[TrialRecord], curve: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sample standard deviation over trials, per epoch; the deviation of a single trial is NaN.

    >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> records = [TrialRecord("paper", row, i, i, "mnist", 0.001, 9, 0.1, {"val_acc": [0.5, 0.6 + i]}) for i in (0, 1)]
    >>> [values.round(2).tolist() for values in mean_curve(records, "val_acc")]
    [[0.5, 1.1], [0.0, 0.71]]
    """
    epochs = min(len(trial.history[curve]) for trial in trials)
    values = np.array([trial.history[curve][:epochs] for trial in trials], dtype=np.float64)  # (trials, epochs)
    with np.errstate(invalid="ignore", over="ignore"):  # a diverged trial has infinite losses
        mean = values.mean(axis=0)
        sd = values.std(axis=0, ddof=1) if len(trials) > 1 else np.full(epochs, np.nan)
    return mean, sd


def learning_curves(records: Iterable[TrialRecord], matches: Iterable[Match]) -> list[Chart]:
    """A chart for each match: the dendritic model and its controls. The charts of one task share their axes."""
    trials, tasks = by_row(records), dict[str, list[Chart]]()
    for match in matches:
        chart = _chart(match, [(row, trials[match.protocol, row]) for row in (match.row, *match.controls)])
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


def _chart(match: Match, drawn: Sequence[tuple[Row, list[TrialRecord]]]) -> Chart:
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


def _lines(row: Row, trials: Sequence[TrialRecord], train: str, validation: str) -> Iterable[Line]:
    """The validation curve with its band, and the training curve."""
    label = f"{row.model}, p={row.dropout:g}" if row.dropout else row.model
    look = {"family": family(row), "size": row.size}
    mean, sd = mean_curve(trials, validation)
    epochs = tuple(float(epoch) for epoch in range(len(mean)))  # the first is 0, as in the store
    band = {"low": tuple((mean - sd).tolist()), "high": tuple((mean + sd).tolist())} if len(trials) > 1 else {}
    yield Line(label, x=epochs, y=tuple(mean.tolist()), **look, **band)  # type: ignore[arg-type]
    mean, _ = mean_curve(trials, train)
    yield Line(label, x=epochs, y=tuple(mean.tolist()), faint=True, **look)  # type: ignore[arg-type]
