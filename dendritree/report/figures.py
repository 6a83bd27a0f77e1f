"""Charts drawn as SVG, small enough for a phone. The same data gives the same bytes."""

from __future__ import annotations

import functools
import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import import_extra
from .layout import Chart, Line
from .palette import FAMILIES, Look

__all__ = ["draw"]

WIDTH = 340  # pixels: what a phone of 360 shows without scrolling
PANEL_HEIGHT = 170
LEGEND_LINE = 17
TOP, BOTTOM, LEFT, RIGHT, BETWEEN = 10, 42, 50, 10, 16  # pixels around and between the panels
DOTS_PER_INCH = 100  # so that one unit of matplotlib's inch is 100 pixels
POINTS = 72 / DOTS_PER_INCH  # of one pixel

ROUND_STEPS = (1, 2, 2.5, 5, 10)  # of ticks
INK, PALE_INK, GRID = "#333840", "#6b7280", "#e6e8eb"
SETTINGS = {
    "svg.fonttype": "none",  # text stays text: searchable, small, in the page's own type
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # shipped with matplotlib, so that every machine lays out alike
    "font.size": 11 * POINTS,
    "axes.edgecolor": "#b6bbc2",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": PALE_INK,
    "ytick.color": PALE_INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "path.simplify": False,
}


def draw(chart: Chart, models: Mapping[tuple[str, int], Look]) -> str:
    """A chart as an `<svg>` element, with its title and its own ids, to stand in a page among others.

    >>> from .layout import Panel
    >>> from .palette import looks
    >>> line = Line("dendritic b=2", "dendritic", 2, (0.0, 0.1), (0.6, 0.7))
    >>> chart = Chart("sweep", "Dropout", "Accuracy against dropout", "dropout", (Panel("accuracy", (line,)),))
    >>> draw(chart, looks([chart]))[:37]
    '<svg class="chart" role="img" viewBox'
    """
    used = {(line.family, line.size) for panel in chart.panels for line in panel.lines}
    return _drawn(chart, tuple((model, models[model]) for model in sorted(used)))


@functools.lru_cache(maxsize=256)  # a report is rewritten after every table, and most of its charts are as they were
def _drawn(chart: Chart, models_and_looks: tuple[tuple[tuple[str, int], Look], ...]) -> str:
    models = dict(models_and_looks)
    matplotlib = import_extra("matplotlib", extra="report")
    figures = import_extra("matplotlib.figure", extra="report")
    backend = import_extra("matplotlib.backends.backend_svg", extra="report")
    named = [line for panel in chart.panels for line in panel.lines if not line.faint]
    labels = list(
        dict.fromkeys(line.label for line in sorted(named, key=lambda of: (FAMILIES.index(of.family), of.size)))
    )
    legend_height = LEGEND_LINE * -(-len(labels) // 2)
    count = len(chart.panels)
    height = TOP + count * PANEL_HEIGHT + (count - 1) * BETWEEN + BOTTOM + legend_height
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": chart.name}):
        figure = figures.Figure(figsize=(WIDTH / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        canvas = backend.FigureCanvasSVG(figure)
        for place, panel in enumerate(chart.panels):
            top = TOP + place * (PANEL_HEIGHT + BETWEEN)
            # Placed by hand: automatic layout draws every chart twice, and moves with the tick labels
            box = (LEFT / WIDTH, 1 - (top + PANEL_HEIGHT) / height)
            axes = figure.add_axes((*box, (WIDTH - LEFT - RIGHT) / WIDTH, PANEL_HEIGHT / height))
            for line in panel.lines:
                _add(axes, line, models[line.family, line.size], chart.form)
            if panel.limits:
                axes.set_ylim(panel.limits)
            _label(axes, chart, panel.y_label, last=place == count - 1)
        figure.legend(
            _legend_entries(figure.axes, labels),
            labels,
            loc="lower center",
            bbox_to_anchor=(0.5, 0),
            ncols=2,
            fontsize=10 * POINTS,
            handlelength=2.6,
            labelcolor=INK,
            borderpad=0.2,
            labelspacing=0.3,
        )
        file = io.StringIO()
        canvas.print_svg(file, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _as_element(file.getvalue(), chart)


def _add(axes: Any, line: Line, look: Look, form: str) -> None:
    """Draw one model into the axes."""
    if line.faint:
        axes.plot(line.x, line.y, color=look.colour, linewidth=0.8, alpha=0.75, dashes=look.dash or (None, None))
        return
    style: dict[str, Any] = {"color": look.colour, "label": line.label, "linewidth": 1.5}
    if look.dash:
        style["dashes"] = look.dash
    if form == "curves":
        axes.plot(line.x, line.y, **style)
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=look.colour, alpha=0.13, linewidth=0)
        return
    mark = {"marker": look.mark, "markersize": 5 if form == "sweep" else 6, "markeredgewidth": 0}
    if form == "points":
        style["linestyle"] = "none"
        style.pop("dashes", None)
    axes.plot(line.x, line.y, **style, **mark)
    if line.low:
        axes.vlines(line.x, line.low, line.high, colors=look.colour, linewidth=1.1, alpha=0.7)


def _label(axes: Any, chart: Chart, y_label: str, *, last: bool) -> None:
    """Axes with names, and only as many numbers as fit."""
    ticker = import_extra("matplotlib.ticker", extra="report")
    axes.set_ylabel(y_label, labelpad=4)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=ROUND_STEPS))
    if chart.form == "points":
        axes.xaxis.set_major_locator(ticker.MaxNLocator(4, steps=ROUND_STEPS))
        axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        axes.margins(x=0.1)
    elif chart.form == "curves":
        axes.margins(x=0.01)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, steps=ROUND_STEPS, integer=True))
    axes.tick_params(labelsize=10 * POINTS, labelbottom=last)
    if last:
        axes.set_xlabel(chart.x_label, labelpad=3)


def _legend_entries(all_axes: list[Any], labels: Sequence[str]) -> list[Any]:
    """One entry a model, though every panel has it."""
    found: dict[str, Any] = {}
    for axes in all_axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    return [found[text] for text in labels]


def _as_element(text: str, chart: Chart) -> str:
    """The `<svg>` element alone: scaled by the page, ids made unique by the chart's name, and a title for readers."""
    start = text.index("<svg")
    body = text[text.index(">", start) + 1 :]
    (box,) = re.findall(r'viewBox="([^"]+)"', text[start : text.index(">", start)])
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # it would speak for the whole page
    body = re.sub(r'<g id="[^"]*"', "<g", body)  # nothing refers to groups
    body = body.replace(' id="', f' id="{chart.name}-').replace("url(#", f"url(#{chart.name}-")
    body = body.replace('xlink:href="#', f'href="#{chart.name}-')
    # A hundredth of a point is less than a pixel sees, and half the bytes; numbers that are read are not in tags
    body = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), body)
    body = re.sub(r"\s+", " ", body).replace("> <", "><").strip()
    # Matplotlib names the type it measured with; the page's own is calmer and never wider
    body = re.sub(r"font: ([0-9.]+px) [^;\"]*", r"font-size: \1", body)
    title = f'<title id="{chart.name}-title">{html.escape(chart.alt)}</title>'
    return f'<svg class="chart" role="img" viewBox="{box}" aria-labelledby="{chart.name}-title">{title}{body}'
