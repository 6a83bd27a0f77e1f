"""Pictures of training and of size: `plot_history`, `plot_pruning`, `plot_efficiency`, `plot_comparison`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import OptionError, check_one_of, import_extra
from ..pruning import PruningPoint
from ..report.chart import Chart, Line
from ..report.palette import Look, looks
from ..report.scaling import label_ends, set_scales, show_size
from ..studies.engine.store import RunStore
from ..studies.engine.trial import Trial
from ..studies.fair import Comparison, summarize
from ..studies.fair.charts import size_charts
from ..training import History
from .style import NORMAL, SMALL, Theme, check_suffix, finish, lighter, new_figure, style_axes, theme_of

__all__ = ["charts_of", "plot_comparison", "plot_efficiency", "plot_history", "plot_pruning"]

COLOURS = ("#0072B2", "#C24E00", "#00775A", "#882255", "#8A7A00", "#332288", "#555555")
"""Of runs that have no family: dark enough for their own names."""


def plot_history(
    history: History | Mapping[str, History], *, theme: str = "light", path: str | os.PathLike[str] | None = None
) -> Any:
    """Loss and accuracy by epoch: validation as a full line, training thin, the best epoch marked.

    Args:
        history: of `dendritree.fit`, or several by name.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree.training import Epoch, FitConfig
        >>> epochs = [Epoch(0, 1.0, 0.9, 0.5, 0.6, 0.1), Epoch(1, 0.8, 0.7, 0.6, 0.7, 0.1)]
        >>> len(plot_history(History(FitConfig(), epochs)).axes)
        2
    """
    look = theme_of(theme)
    check_suffix(path)
    runs = history if isinstance(history, Mapping) else {"": history}
    if not runs or not all(isinstance(run, History) and run.epochs for run in runs.values()):
        got = f"a {type(history).__name__}"
        raise OptionError(f"history must be what fit returns, with an epoch or more, or a mapping of such: got {got}")
    columns = {name: run.columns() for name, run in runs.items()}
    judged = any(not math.isnan(value) for each in columns.values() for value in each["val_acc"])
    kinds = [("loss", "loss"), *([("acc", "accuracy")] if judged else [])]
    figure = new_figure(3.4 * len(kinds), 2.6, look)
    ticker = import_extra("matplotlib.ticker", extra="plot")
    for place, (kind, label) in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), place + 1)
        for number, (name, run) in enumerate(runs.items()):
            colour = lighter(COLOURS[number % len(COLOURS)], look)
            epoch, best = columns[name]["epoch"], run.best
            axes.plot(epoch, columns[name][f"train_{kind}"], color=colour, linewidth=0.9, alpha=0.6, dashes=(3, 1.5))
            axes.plot(epoch, columns[name][f"val_{kind}"], color=colour, linewidth=1.6, label=name or "validation")
            axes.plot([best.epoch], [getattr(best, f"val_{kind}")], "o", color=colour, markersize=4.5)
        style_axes(axes, look)
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    axes = figure.axes[0]
    axes.plot([], [], color=look.pale, linewidth=0.9, dashes=(3, 1.5), label="training")
    axes.plot([], [], "o", color=look.pale, markersize=4.5, label="best epoch")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=look.ink)
    return finish(figure, path)


def plot_pruning(
    curve: Sequence[PruningPoint] | Mapping[str, Sequence[PruningPoint]],
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Accuracy against size, as `pruning_curve` measured it: loss where there is no accuracy.

    Args:
        curve: of `dendritree.pruning_curve`, or several by name.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None makes a figure.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> points = [PruningPoint(900, 640, 0.2, 0.95), PruningPoint(450, 300, 0.3, 0.91)]
        >>> plot_pruning(points).axes[0].get_xlabel()
        'parameters'
    """
    look = theme_of(theme)
    check_suffix(path)
    curves = curve if isinstance(curve, Mapping) else {"": curve}
    if not curves or not all(curves.values()):
        raise OptionError("curve must have at least one point: got none")
    ax = new_figure(4.2, 2.8, look).add_subplot() if ax is None else ax
    is_loss = any(math.isnan(point.accuracy) for points in curves.values() for point in points)
    for number, (name, points) in enumerate(curves.items()):
        heights = [point.loss if is_loss else point.accuracy for point in points]
        colour = lighter(COLOURS[number % len(COLOURS)], look)
        sizes = [point.parameters for point in points]
        ax.plot(sizes, heights, "o-", color=colour, linewidth=1.5, markersize=4, label=name)
    style_axes(ax, look)
    ax.set_xlabel("parameters")
    ax.set_ylabel("loss" if is_loss else "accuracy")
    ticker = import_extra("matplotlib.ticker", extra="plot")
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: show_size(value)))
    ax.set_xlim(left=0)
    if "" not in curves:
        ax.legend(frameon=False, fontsize=SMALL, labelcolor=look.ink)
    return finish(ax.figure, path)


Source = str | os.PathLike[str] | Comparison | Chart | Sequence[Chart] | Sequence[Trial]
"""What charts of a comparison are drawn from: the folder of a run, its records, its summary, or charts themselves."""


def charts_of(source: Source) -> list[Chart]:
    """The charts of score against parameters, one a task, of a comparison: its folder, records, summary, or charts."""
    if isinstance(source, str | os.PathLike):
        with RunStore.open_for_reading(source) as store:
            if "comparison" not in store.config:
                raise OptionError(
                    f"the folder must be of a comparison, as dendritree compare makes it: got {Path(source)}"
                )
            source = store.trials()
    if isinstance(source, Chart):
        return [source]
    if isinstance(source, Comparison):
        return list(size_charts(source))
    charts = [each for each in source if isinstance(each, Chart)]
    records = [each for each in source if isinstance(each, Trial)]
    if not len(source) or len(source) not in (len(charts), len(records)):
        got = type(source[0]).__name__ if len(source) else "nothing"
        raise OptionError(f"a comparison must be a run's folder, its records, its summary or charts: got {got}")
    return charts or list(size_charts(summarize(records)))


def plot_efficiency(
    comparison: Source,
    task: str | None = None,
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Accuracy against parameters on one task, a line a family, with bands for 95 % intervals over seeds.

    Args:
        comparison: the folder of a `dendritree compare` run, its records, or what `summarize` made of them.
        task: by name, as `mnist` or `mnist:128`; the first by default.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None makes a figure.
        path: a file to write: .svg, .png or .pdf.
    """
    look = theme_of(theme)
    check_suffix(path)
    charts = {chart.name.removeprefix("sizes-"): chart for chart in charts_of(comparison)}
    if not charts:
        raise OptionError("a comparison must have judged models to draw: got none")
    name = next(iter(charts)) if task is None else check_one_of("task", task.replace(":", "-"), charts)
    ax = new_figure(4.4, 3.0, look).add_subplot() if ax is None else ax
    _draw_sizes({ax: charts[name]}, look)
    return finish(ax.figure, path)


def plot_comparison(comparison: Source, *, theme: str = "light", path: str | os.PathLike[str] | None = None) -> Any:
    """All tasks of a comparison side by side: the score of every family against its parameters.

    Args:
        comparison: the folder of a `dendritree compare` run, its records, or what `summarize` made of them.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.
    """
    look = theme_of(theme)
    check_suffix(path)
    charts = charts_of(comparison)
    if not charts:
        raise OptionError("a comparison must have judged models to draw: got none")
    columns = min(len(charts), 2 if len(charts) <= 4 else 3)
    rows = -(-len(charts) // columns)
    figure = new_figure(3.9 * columns, 2.7 * rows, look)
    _draw_sizes({figure.add_subplot(rows, columns, place + 1): chart for place, chart in enumerate(charts)}, look)
    return finish(figure, path)


def _draw_sizes(charts: Mapping[Any, Chart], theme: Theme) -> None:
    """Charts of form `scaling`, by the axes of one figure that each is drawn into."""
    models = {
        key: Look(lighter(look.colour, theme), look.dash, look.mark) for key, look in looks(charts.values()).items()
    }
    for axes, chart in charts.items():
        panel = chart.panels[0]
        for line in panel.lines:
            _add_line(axes, line, models[line.family, line.size])
        style_axes(axes, theme)
        axes.set_ylabel(panel.y_label)
        axes.set_xlabel(chart.x_label)
        axes.set_title(chart.title, fontsize=NORMAL, color=theme.ink, loc="left")
        set_scales(axes, panel)
    figure = next(iter(charts)).figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # labels keep apart by pixels, which the layout decides
    for axes, chart in charts.items():
        label_ends(axes, chart.panels[0].lines, models, size=SMALL)


def _add_line(axes: Any, line: Line, look: Look) -> None:
    if line.level:
        axes.axhline(line.y[0], color=look.colour, linewidth=1.0, dashes=look.dash or (None, None))
        return
    style: dict[str, Any] = {"dashes": look.dash} if look.dash else {}
    axes.plot(line.x, line.y, color=look.colour, linewidth=1.6, marker=look.mark, markersize=4.5, **style)
    if line.low and len(line.x) > 1:
        axes.fill_between(line.x, line.low, line.high, color=look.colour, alpha=0.18, linewidth=0)
