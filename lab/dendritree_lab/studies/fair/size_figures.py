"""Figures of a comparison: `plot_efficiency` for one task, `plot_comparison` for all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dendritree.errors import OptionError, check_one_of
from dendritree.plot.palette import Theme
from dendritree.plot.style import NORMAL, SMALL, Picture, style_axes

from ...report.chart import Chart
from ...report.layout import anchor
from ...report.looks import looks
from ...report.score_axes import label_ends, set_scales
from ..engine.store import RunStore
from ..engine.trial import Trial
from .comparison import tasks_in, trials_in
from .comparison_results import Comparison, summarize
from .score_charts import size_charts

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
