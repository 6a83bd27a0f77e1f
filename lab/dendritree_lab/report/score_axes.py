"""Charts of a score against a size: logarithmic axes, accuracies on a scale of errors, labels at the ends of lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dendritree.plot.style import show_size

from .chart import Line, Panel
from .looks import Looks

LEAST_ERROR = 5e-4
"""Smaller errors are drawn here, since a logarithmic axis of errors has no end."""
ROUND_ACCURACIES = (0.9, 0.99, 0.999, 0.5, 0.95, 0.98, 0.8, 0.995, 0.998, 0.7, 0.97, 0.6, 0.4, 0.2, 0.85, 0.96, 0.985)
"""Ticks for accuracies, the most familiar first."""
MOST_TICKS = 7
TICK_SPACE = 18
LABEL_SPACE, LABEL_LENGTH = 13, 44
"""Pixels that a tick or a label needs."""
MARGIN = 0.06
FAR = 2.0
"""The factor by which the axis may be extended to show a level line."""


def set_scales(axes: Any, panel: Panel) -> None:
    """Set a logarithmic axis for sizes and the panel's own scale, both with round ticks."""
    from matplotlib.ticker import MaxNLocator

    lines = [line for line in panel.lines if not line.level] or panel.lines
    _set_sizes(axes, np.log([x for line in lines for x in line.x]))
    to_steps, to_values = (_of_error, _of_steps) if panel.scale == "errors" else (np.asarray, np.asarray)
    axes.set_yscale("function", functions=(to_steps, to_values))
    ends = np.array([(values.min(), values.max()) for values in map(to_steps, map(_heights, lines))])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    for level in to_steps([line.y[0] for line in panel.lines if line.level]):
        # A line far from the others would compress them: its label shows where it is.
        if max(high, level) - min(low, level) < FAR * (high - low):
            low, high = min(low, level), max(high, level)
    margin = MARGIN * (high - low) or MARGIN
    axes.set_ylim(*to_values([low - margin, high + margin]))
    ticks = _round_ticks(axes) if panel.scale == "errors" else []
    if len(ticks) > 2:
        axes.set_yticks(ticks, [f"{value:g}" for value in ticks])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=(1, 2, 5, 10)))
        shorten_ticks(axes.yaxis, axes.get_ylim())


def shorten_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Use labels like 200k or 1.5M on an axis that reaches 10,000: longer ones push the axis label off the chart."""
    if max(map(abs, limits)) >= 1e4:
        axis.set_major_formatter(lambda value, _: show_size(value))


def _set_sizes(axes: Any, sizes: Any) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    span = sizes.max() - sizes.min()
    room = max(MARGIN * span, 0.1)
    axes.set_xscale("log")
    axes.set_xlim(np.exp(sizes.min() - room), np.exp(sizes.max() + room))
    decades = span / math.log(10)
    subs = (1,) if decades >= 3 else (1, 3) if decades >= 2 else (1, 2, 5) if decades >= 0.6 else (1, 1.5, 2, 3, 5, 7)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: show_size(value))


def _heights(line: Line) -> Any:
    return np.array([value for value in (*line.y, *line.low, *line.high) if math.isfinite(value)])


def _round_ticks(axes: Any) -> list[float]:
    """The most familiar accuracies within the limits of the axis that do not overlap."""
    low, high = axes.get_ylim()
    heights = {v: axes.transData.transform((1.0, v))[1] for v in ROUND_ACCURACIES if low <= v <= high}
    ticks: list[float] = []
    for value, height in heights.items():
        if len(ticks) < MOST_TICKS and all(abs(height - heights[other]) >= TICK_SPACE for other in ticks):
            ticks.append(value)
    return sorted(ticks)


def _of_error(accuracy: Any) -> Any:
    return -np.log(np.maximum(1.0 - np.asarray(accuracy), LEAST_ERROR))


def _of_steps(steps: Any) -> Any:
    return 1.0 - np.exp(-np.asarray(steps))


def label_ends(axes: Any, lines: Sequence[Line], models: Looks, *, size: float) -> None:
    """Write the name of each line where it ends, in its color, shifted so that names do not overlap.

    A level line outside the axes has an arrow that shows on which side it is.
    """
    named = [line for line in lines if not line.faint]
    right, box = axes.get_xlim()[1], axes.bbox
    ends = [(right if line.level else line.x[-1], line.y[-1]) for line in named]
    places = [(float(x), float(y)) for x, y in axes.transData.transform(ends)]
    inside = [(x, min(max(y, box.y0), box.y1)) for x, y in places]
    points = 72 / axes.figure.dpi  # per pixel
    for line, end, (_, before), (_, shown), after in zip(named, ends, places, inside, apart(inside), strict=True):
        arrow = "" if before == shown else " \N{UPWARDS ARROW}" if before > shown else " \N{DOWNWARDS ARROW}"
        axes.annotate(
            line.label + arrow,
            end,
            (3 * points if line.level else 6 * points, (after - before) * points),
            textcoords="offset points",
            color=models[line.family, line.size].color,
            fontsize=size,
            fontweight="bold",
            verticalalignment="center",
            annotation_clip=False,
        )


def apart(places: Sequence[tuple[float, float]]) -> list[float]:
    """Heights of labels at these positions, in pixels, moved as little as possible so that they do not overlap.

    >>> apart([(10.0, 50.0), (10.0, 50.0), (200.0, 50.0)])
    [43.5, 56.5, 50.0]
    """
    heights = [height for _, height in places]
    order = sorted(range(len(places)), key=lambda place: (heights[place], place))
    for _ in range(100):
        before = [*heights]
        for lower, upper in itertools.combinations(order, 2):
            lack = LABEL_SPACE - (heights[upper] - heights[lower])
            if abs(places[upper][0] - places[lower][0]) < LABEL_LENGTH and lack > 1e-9:
                heights[lower] -= lack / 2
                heights[upper] += lack / 2
        if heights == before:
            break
    return heights
