"""Charts as SVG or PNG, small enough for a phone. The same data gives the same bytes."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

from dendritree.plot.palette import LIGHT

from .chart import Chart, Line
from .looks import FAMILIES, Look, Looks
from .score_axes import label_ends, set_scales, shorten_ticks

WIDTH = 340  # pixels: what a phone of 360 shows without scrolling
WIDE = 760  # pixels, of a chart that stands alone on a desktop
LEGEND_LINE, BAR_HEIGHT = 17, 20
PANEL = (170, 58, 10)  # height of a panel, and room at its left and right, in pixels
SCALING_PANEL = (220, 58, 56)  # with room for labels at the ends of lines
TOP, BOTTOM, BETWEEN = 10, 42, 16  # pixels around and between the panels
BARS_LEFT = 132  # pixels for the names of bars
DOTS_PER_INCH = 100  # so that one of matplotlib's inches is 100 pixels
POINTS = 72 / DOTS_PER_INCH  # per pixel

ROUND_STEPS = (1, 2, 2.5, 5, 10)  # of ticks
SETTINGS: Any = {  # of matplotlib
    "svg.fonttype": "none",  # keep text as text: searchable, small, in the page's own font
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # shipped with matplotlib, so that the layout is the same on every machine
    "font.size": 11 * POINTS,
    "axes.edgecolor": "#b6bbc2",
    "axes.labelcolor": LIGHT.ink,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.facecolor": "none",  # the page's background, light or dark
    "figure.facecolor": "none",
    "grid.color": LIGHT.grid,
    "grid.linewidth": 0.8,
    "xtick.color": LIGHT.pale,
    "ytick.color": LIGHT.pale,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "path.simplify": False,
}


def draw(chart: Chart, models: Looks, width: int = WIDTH) -> str:
    """A chart as an `<svg>` element, with a title and unique ids, so that a page can contain several.

    Its class is `narrow` or `wide`, by its width in pixels before the page scales it.

    >>> from dendritree_lab.report.chart import Panel
    >>> from dendritree_lab.report.looks import looks
    >>> line = Line("dendritic b=2", "dendritic", 2, (0.0, 0.1), (0.6, 0.7))
    >>> chart = Chart("sweep", "Dropout", "Accuracy against dropout", "dropout", (Panel("accuracy", (line,)),))
    >>> draw(chart, looks([chart]))[:44]
    '<svg class="chart narrow" role="img" viewBox'
    """
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    return _as_element(_rendered(chart, models, width, format="svg", metadata=metadata).decode(), chart, width)


def draw_png(chart: Chart, models: Looks) -> bytes:
    """A chart as a PNG file on white, for documents that cannot contain an `<svg>`.

    >>> from dendritree_lab.report.looks import looks
    >>> draw_png(Chart("empty", "Empty", "Nothing", "x", ()), looks([]))[1:4]
    b'PNG'
    """
    options = {"dpi": 2 * DOTS_PER_INCH, "facecolor": "white", "metadata": {"Software": None}}
    return _rendered(chart, models, WIDTH, format="png", **options)


def _rendered(chart: Chart, models: Looks, width: int, **options: Any) -> bytes:
    """The bytes of a file; options as for matplotlib's `savefig`."""
    import matplotlib
    from matplotlib.figure import Figure

    named = [line for panel in chart.panels for line in panel.lines if not line.faint]
    order = {family: place for place, family in enumerate(FAMILIES)}  # others are last, by name
    named.sort(key=lambda line: (order.get(line.family, len(order)), line.family, line.size))
    labels = list(dict.fromkeys(line.label for line in named))
    scaling, barred = chart.form == "scaling", chart.form in ("shares", "levels")
    panel_height, left, right = SCALING_PANEL if scaling else PANEL
    if barred:
        bars = max((len(panel.lines) for panel in chart.panels), default=0)
        panel_height, left = BAR_HEIGHT * max(1, bars), BARS_LEFT
    if chart.square:
        panel_height = width - left - right
    titled = scaling or barred or chart.form in ("values", "cloud")  # the title names the model
    legend_height = 0 if titled else LEGEND_LINE * -(-len(labels) // 2)
    count = len(chart.panels)
    height = TOP + count * panel_height + (count - 1) * BETWEEN + BOTTOM + legend_height
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": chart.name}):
        figure = Figure(figsize=(width / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        for place, panel in enumerate(chart.panels):
            top = TOP + place * (panel_height + BETWEEN)
            # Placed explicitly: automatic layout draws every chart twice, and depends on the tick labels.
            box = (left / width, 1 - (top + panel_height) / height)
            axes = figure.add_axes((*box, (width - left - right) / width, panel_height / height))
            if barred:
                _add_rows(axes, chart, panel.lines, models)
                continue
            if chart.form == "values":
                axes.axhline(0, linewidth=0.8, color=LIGHT.pale)
            for line in panel.lines:
                _add(axes, line, models[line.family, line.size], chart.form)
            if panel.limits:
                axes.set_ylim(panel.limits)
            _label(axes, chart, panel.y_label, last=place == count - 1)
            if chart.form == "agreement":
                _add_diagonal(axes)
            if scaling:
                set_scales(axes, panel)
                label_ends(axes, panel.lines, models, size=10.5 * POINTS)
        if labels and legend_height:
            _add_legend(figure, labels)
        file = io.BytesIO()
        figure.savefig(file, **options)
    return file.getvalue()


def _add(axes: Any, line: Line, look: Look, form: str) -> None:
    """Draw one model into the axes."""
    if line.faint:
        axes.plot(line.x, line.y, linewidth=0.8, alpha=0.75, **look.stroke)
        return
    dots = form in ("points", "cloud", "agreement")
    style: dict[str, Any] = {"linestyle": "none", "color": look.color} if dots else {"linewidth": 1.5, **look.stroke}
    if form == "cloud":
        style |= {"marker": "o", "markersize": 3, "markeredgewidth": 0, "alpha": 0.45}
    elif form != "curves":
        mark_size = {"points": 6, "values": 3.5, "agreement": 4.5}.get(form, 5)
        style |= {"marker": look.mark, "markersize": mark_size, "markeredgewidth": 0}
    axes.plot(line.x, line.y, label=line.label, **style)
    if line.left:
        axes.hlines(line.y, line.left, line.right, colors=look.color, linewidth=0.8, alpha=0.4)
        axes.vlines(line.x, line.low, line.high, colors=look.color, linewidth=0.8, alpha=0.4)
        return
    if line.level:
        axes.axhline(line.y[0], linewidth=0.8, **look.stroke)
    if line.low and form in ("curves", "scaling", "values") and len(line.x) > 1:  # a band around one point has no width
        axes.fill_between(line.x, line.low, line.high, color=look.color, alpha=0.13, linewidth=0)
    elif line.low:
        axes.vlines(line.x, line.low, line.high, colors=look.color, linewidth=1.1, alpha=0.7)


def _add_diagonal(axes: Any) -> None:
    """Make the axes square with the same scale in both directions, with the line on which x equals y."""
    ends = (*axes.get_xlim(), *axes.get_ylim())
    both = min(ends), max(ends)
    axes.set_xlim(both)
    axes.set_ylim(both)
    axes.plot(both, both, linewidth=0.8, color=LIGHT.pale, zorder=1)
    axes.xaxis.set_major_locator(axes.yaxis.get_major_locator())


def _add_rows(axes: Any, chart: Chart, lines: Sequence[Line], models: Looks) -> None:
    """Draw a row per line, the first on top: bars for shares of a whole, marks for numbers of any sign; intervals."""
    rows = range(len(lines) - 1, -1, -1)
    looks = [models[line.family, line.size] for line in lines]
    if chart.form == "levels":
        axes.axvline(0, linewidth=0.8, color=LIGHT.pale)
    for row, line in zip(rows, lines, strict=True):
        if line.low:
            axes.hlines(row, line.low, line.high, colors=LIGHT.ink, linewidth=1.1, alpha=0.7)
    if chart.form == "levels":
        for row, line, look in zip(rows, lines, looks, strict=True):
            axes.plot(line.x, [row], marker=look.mark, markersize=5, markeredgewidth=0, color=look.color)
        axes.xaxis.set_major_locator(_ticks(4))
        shorten_ticks(axes.xaxis, axes.get_xlim())
    else:
        values, ends = [line.x[0] for line in lines], [max((line.x[0], *line.high)) for line in lines]
        axes.barh(rows, values, height=0.62, color=[look.color for look in looks])
        axes.set_xlim(0, 1.18 * max([*ends, 0.01]))  # room for the values
        axes.xaxis.set_major_locator(_ticks(5, steps=(1, 2, 5, 10)))  # no half percents
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        style = {"textcoords": "offset points", "fontsize": 10 * POINTS, "color": LIGHT.ink, "va": "center"}
        for row, value, end in zip(rows, values, ends, strict=True):
            axes.annotate(f"{value:.0%}", (end, row), (2.5, 0), **style)
    axes.set_yticks(list(rows), [line.label for line in lines])
    axes.set_ylim(-0.5, len(lines) - 0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(labelsize=10 * POINTS)
    axes.set_xlabel(chart.x_label, labelpad=3)


def _label(axes: Any, chart: Chart, y_label: str, *, last: bool) -> None:
    """Label the axes, with only as many ticks as fit."""
    axes.set_ylabel(y_label, labelpad=4)
    axes.yaxis.set_major_locator(_ticks(6))
    shorten_ticks(axes.yaxis, axes.get_ylim())
    if chart.form == "points":
        axes.xaxis.set_major_locator(_ticks(4))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.margins(x=0.1)
    elif chart.form in ("values", "cloud"):
        axes.xaxis.set_major_locator(_ticks(4))
        shorten_ticks(axes.xaxis, axes.get_xlim())
    elif chart.form == "curves":
        axes.margins(x=0.01)
        axes.xaxis.set_major_locator(_ticks(6, integer=True))
    axes.tick_params(labelsize=10 * POINTS, labelbottom=last)
    if last:
        axes.set_xlabel(chart.x_label, labelpad=3)


def _ticks(count: int, *, steps: Sequence[float] = ROUND_STEPS, integer: bool = False) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, steps=steps, integer=integer)


def _add_legend(figure: Any, labels: Sequence[str]) -> None:
    """Add a legend with one entry per model, although every panel has it."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    figure.legend(
        [handles[text] for text in labels],
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 0),
        ncols=2,
        fontsize=10 * POINTS,
        handlelength=2.6,
        labelcolor=LIGHT.ink,
        borderpad=0.2,
        labelspacing=0.3,
    )


def _as_element(text: str, chart: Chart, width: int) -> str:
    """Only the `<svg>` element: scaled by the page, with ids unique to the chart, and a title for screen readers."""
    name, form = (chart.name, "narrow") if width == WIDTH else (f"{chart.name}-wide", "wide")
    start = text.index("<svg")
    body = text[text.index(">", start) + 1 :]
    (box,) = re.findall(r'viewBox="([^"]+)"', text[start : text.index(">", start)])
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # styles would apply to the whole page
    body = re.sub(r'<g id="[^"]*"', "<g", body)  # nothing refers to groups
    body = body.replace(' id="', f' id="{name}-').replace("url(#", f"url(#{name}-")
    body = body.replace('xlink:href="#', f'href="#{name}-')
    # Rounding to a hundredth of a point, less than a pixel, halves the bytes; visible numbers are not in tags.
    body = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), body)
    body = re.sub(r"\s+", " ", body).replace("> <", "><").strip()
    # Matplotlib names the font it measured with; use the page's own instead, which is never wider.
    body = re.sub(r"font: ([0-9.]+px) [^;\"]*", r"font-size: \1", body)
    title = f'<title id="{name}-title">{html.escape(chart.alt)}</title>'
    return f'<svg class="chart {form}" role="img" viewBox="{box}" aria-labelledby="{name}-title">{title}{body}'
