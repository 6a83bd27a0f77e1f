"""Figures of training and of size: `plot_history`, `plot_pruning`, `plot_efficiency`, `plot_comparison`."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import OptionError, check_one_of, import_extra
from ..pruning import PruningPoint
from ..report.chart import Chart
from ..report.layout import anchor
from ..report.palette import Theme, looks
from ..report.scaling import label_ends, set_scales, show_size
from ..studies.engine.store import RunStore
from ..studies.engine.trial import Trial
from ..studies.fair import Comparison, summarize
from ..studies.fair.charts import size_charts
from ..studies.fair.run import tasks_in, trials_in
from ..training import History
from .style import NORMAL, SMALL, Picture, style_axes

COLORS = ("#0072B2", "#C24E00", "#00775A", "#882255", "#8A7A00", "#332288", "#555555")
"""Colors of runs without a family, dark enough for text."""


def plot_history(
    history: History | Mapping[str, History], *, theme: str = "light", path: str | os.PathLike[str] | None = None
) -> Any:
    """Loss and accuracy by epoch: validation as a solid line, training thin and dashed, the best epoch marked.

    Args:
        history: the history that `dendritree.fit` returns, or several by name.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree.training import Epoch, FitConfig
        >>> epochs = [Epoch(0, 1.0, 0.9, 0.5, 0.6, 0.1), Epoch(1, 0.8, 0.7, 0.6, 0.7, 0.1)]
        >>> len(plot_history(History(FitConfig(), epochs)).axes)
        2
    """
    picture = Picture(theme, path)
    runs = history if isinstance(history, Mapping) else {"": history}
    if not runs or not all(isinstance(run, History) and run.epochs for run in runs.values()):
        got = f"a {type(history).__name__}"
        raise OptionError(f"history must be what fit returns, with an epoch or more, or a mapping of such: got {got}")
    columns = {name: run.columns() for name, run in runs.items()}
    has_accuracy = any(not math.isnan(value) for each in columns.values() for value in each["val_acc"])
    kinds = {"loss": "loss", "acc": "accuracy"} if has_accuracy else {"loss": "loss"}
    figure = picture.figure(3.4 * len(kinds), 2.6)
    ticker = import_extra("matplotlib.ticker", extra="plot")
    thin: dict[str, Any] = {"linewidth": 0.9, "dashes": (3, 1.5)}
    for place, (kind, label) in enumerate(kinds.items(), start=1):
        axes = figure.add_subplot(1, len(kinds), place)
        for color, (name, run) in _colored(runs, picture.theme):
            epoch, best = columns[name]["epoch"], run.best
            axes.plot(epoch, columns[name][f"train_{kind}"], color=color, alpha=0.6, **thin)
            axes.plot(epoch, columns[name][f"val_{kind}"], color=color, linewidth=1.6, label=name or "validation")
            axes.plot([best.epoch], [getattr(best, f"val_{kind}")], "o", color=color, markersize=4.5)
        style_axes(axes, picture.theme)
        axes.set(xlabel="epoch", ylabel=label)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    axes = figure.axes[0]
    axes.plot([], [], color=picture.theme.pale, label="training", **thin)
    axes.plot([], [], "o", color=picture.theme.pale, markersize=4.5, label="best epoch")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=picture.theme.ink)
    return picture.finish(figure)


def _colored(runs: Mapping[str, Any], theme: Theme) -> list[tuple[str, tuple[str, Any]]]:
    """Runs by name, each with its own color."""
    return [(theme.adapt(color), run) for color, run in zip(itertools.cycle(COLORS), runs.items(), strict=False)]


def plot_pruning(
    curve: Sequence[PruningPoint] | Mapping[str, Sequence[PruningPoint]],
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Accuracy against size, as measured by `pruning_curve`; loss if there is no accuracy.

    Args:
        curve: the result of `dendritree.pruning_curve`, or several by name.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None creates a figure.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> points = [PruningPoint(900, 640, 0.2, 0.95), PruningPoint(450, 300, 0.3, 0.91)]
        >>> plot_pruning(points).axes[0].get_xlabel()
        'parameters'
    """
    picture = Picture(theme, path)
    curves = curve if isinstance(curve, Mapping) else {"": curve}
    if not curves or not all(curves.values()):
        raise OptionError("curve must have at least one point: got none")
    ax = picture.axes(ax, 4.2, 2.8)
    is_loss = any(math.isnan(point.accuracy) for points in curves.values() for point in points)
    for color, (name, points) in _colored(curves, picture.theme):
        sizes, heights = zip(*((p.parameters, p.loss if is_loss else p.accuracy) for p in points), strict=True)
        ax.plot(sizes, heights, "o-", color=color, linewidth=1.5, markersize=4, label=name)
    style_axes(ax, picture.theme)
    ax.set(xlabel="parameters", ylabel="loss" if is_loss else "accuracy")
    ticker = import_extra("matplotlib.ticker", extra="plot")
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: show_size(value)))
    ax.set_xlim(left=0)
    if "" not in curves:
        ax.legend(frameon=False, fontsize=SMALL, labelcolor=picture.theme.ink)
    return picture.finish(ax.figure)


Source = str | os.PathLike[str] | Comparison | Chart | Sequence[Chart] | Sequence[Trial]
"""The source of a comparison: the folder of a run, its trials, its summary, or charts."""


def charts_of(source: Source) -> list[Chart]:
    """The charts of score against parameters of a comparison, one per task and at least one."""
    if isinstance(source, str | os.PathLike):
        with RunStore.open_for_reading(source) as store:
            if "comparison" not in store.config:
                raise OptionError(f"the folder must be made by `dendritree compare`: got {Path(source)}")
            source = summarize(trials_in(store), tasks_in(store))
    if isinstance(source, Sequence) and source and all(isinstance(each, Trial) for each in source):
        source = summarize(source)  # type: ignore[arg-type]
    if isinstance(source, Comparison):
        source = list(size_charts(source))
        if not source:
            raise OptionError("a comparison must have evaluated models to draw: got none")
    charts = [source] if isinstance(source, Chart) else list(source)
    if not charts or not all(isinstance(chart, Chart) for chart in charts):
        got = type(charts[0]).__name__ if charts else "nothing"
        raise OptionError(f"a comparison must be a run's folder, its records, its summary or charts: got {got}")
    return charts  # type: ignore[return-value]


def plot_efficiency(
    comparison: Source,
    task: str | None = None,
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Accuracy against parameters on one task, one line per family, with bands for 95% intervals over seeds.

    Args:
        comparison: the folder of a `dendritree compare` run, its trials, or the result of `summarize`.
        task: name of the task, such as `mnist` or `mnist:128`; by default the first one.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None creates a figure.
        path: a file to write: .svg, .png or .pdf.
    """
    picture = Picture(theme, path)
    charts = {chart.name.removeprefix("sizes-"): chart for chart in charts_of(comparison)}
    name = next(iter(charts)) if task is None else check_one_of("task", anchor(task), charts)
    ax = picture.axes(ax, 4.4, 3.0)
    _draw_sizes({ax: charts[name]}, picture.theme)
    return picture.finish(ax.figure)


def plot_comparison(comparison: Source, *, theme: str = "light", path: str | os.PathLike[str] | None = None) -> Any:
    """All tasks of a comparison side by side: the score of every family against its parameters.

    Args:
        comparison: the folder of a `dendritree compare` run, its trials, or the result of `summarize`.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.
    """
    picture, charts = Picture(theme, path), charts_of(comparison)
    columns = min(len(charts), 2 if len(charts) <= 4 else 3)
    rows = -(-len(charts) // columns)
    figure = picture.figure(3.9 * columns, 2.7 * rows)
    axes = (figure.add_subplot(rows, columns, place + 1) for place in range(len(charts)))
    _draw_sizes(dict(zip(axes, charts, strict=True)), picture.theme)
    return picture.finish(figure)


def _draw_sizes(charts: Mapping[Any, Chart], theme: Theme) -> None:
    """Draw charts of form `scaling`, each into its axes of one figure."""
    models = {model: look.on(theme) for model, look in looks(charts.values()).items()}
    for axes, chart in charts.items():
        panel = chart.panels[0]
        for line in panel.lines:
            look = models[line.family, line.size]
            if line.level:
                axes.axhline(line.y[0], linewidth=1.0, **look.stroke)
                continue
            axes.plot(line.x, line.y, linewidth=1.6, marker=look.mark, markersize=4.5, **look.stroke)
            if line.low and len(line.x) > 1:
                axes.fill_between(line.x, line.low, line.high, color=look.color, alpha=0.18, linewidth=0)
        style_axes(axes, theme)
        axes.set(xlabel=chart.x_label, ylabel=panel.y_label)
        axes.set_title(chart.title, fontsize=NORMAL, color=theme.ink, loc="left")
        set_scales(axes, panel)
    figure = next(iter(charts)).figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # labels are spaced in pixels, which depend on the layout
    for axes, chart in charts.items():
        label_ends(axes, chart.panels[0].lines, models, size=SMALL)
