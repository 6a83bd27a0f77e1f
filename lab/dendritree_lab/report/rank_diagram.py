"""Diagrams of mean ranks after Demšar (2006): names on either side, and bars that join models without a significant
difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dendritree.plot.palette import Theme

TICKS, CRITICAL, BAR, NAME = 1.3, 1.1, 0.55, 1.0
"""Heights of the parts of a diagram, in lines of text: numbers of the axis, critical difference, a bar, a name."""
BELOW = 0.55
"""Height between the bars and the first name."""
WIDTH, GAP = 0.64, 0.9
"""Width of a bold letter, and of the space around a name, in text heights."""


@dataclass(frozen=True)
class RankDiagram:
    """The data of a diagram."""

    names: tuple[str, ...]
    """Names of the models, best first."""
    ranks: tuple[float, ...]
    bars: tuple[tuple[float, float], ...]
    """Ends of each bar: the ranks of the first and the last model that it joins."""
    critical: float
    """The critical difference."""

    @property
    def lines(self) -> float:
        """Its height, in lines of text.

        >>> RankDiagram(("a", "b"), (1.2, 1.8), ((1.2, 1.8),), 0.9).lines
        4.5
        """
        return TICKS + CRITICAL + BAR * len(self.bars) + BELOW + NAME * math.ceil(len(self.names) / 2)


def draw_ranks(axes: Any, diagram: RankDiagram, colors: Sequence[str], theme: Theme, *, size: float) -> None:
    """Draw a diagram into axes, which should have the height of its lines. Rank 1, the best, is on the left.

    Args:
        axes: matplotlib axes; their frame and ticks are hidden.
        diagram: what to show.
        colors: colors of the names.
        theme: theme of the axis, its numbers and the bars.
        size: size of the text, in points.
    """
    pale = theme.pale
    count, room = len(diagram.names), _room(axes, diagram, size)
    axes.set_axis_off()
    axes.set_xlim(1 - room, count + room)
    axes.set_ylim(-(diagram.lines - TICKS - CRITICAL), TICKS + CRITICAL)
    axes.plot([1, count], [0, 0], color=pale, linewidth=1.0, solid_capstyle="butt")
    text = {"fontsize": size, "verticalalignment": "center"}
    for rank in range(1, count + 1):
        axes.plot([rank, rank], [0, 0.22], color=pale, linewidth=1.0)
        axes.text(rank, 0.72, str(rank), color=pale, horizontalalignment="center", **text)
    end = min(1 + diagram.critical, count + room)  # with few data sets it is longer than the axis
    beside = end < count - 1
    height = TICKS + (CRITICAL / 2 if beside else 0.1)
    axes.plot([1, end], [height, height], color=pale, linewidth=1.2)
    for x in (1, end) if end == 1 + diagram.critical else (1,):
        axes.plot([x, x], [height - 0.16, height + 0.16], color=pale, linewidth=1.2)
    label = f"critical difference {diagram.critical:.2f}"
    where = (end + 0.02 * (count - 1 + 2 * room), height) if beside else (1, height + 0.7)
    axes.text(*where, label, color=pale, **text)
    for place, (low, high) in enumerate(diagram.bars):
        bar = -BAR * (place + 0.75)
        axes.plot([low - 0.03, high + 0.03], [bar, bar], color=theme.ink, linewidth=3.2, solid_capstyle="round")
    _add_names(axes, diagram, colors, room, text)


def _room(axes: Any, diagram: RankDiagram, size: float) -> float:
    """Width of the names on either side, in ranks."""
    letters = max(map(len, diagram.names)) + len("  1.00")
    pixels = size * axes.figure.dpi / 72 * (WIDTH * letters + GAP)
    return float((len(diagram.names) - 1) * pixels / max(axes.bbox.width - 2 * pixels, pixels))


def _add_names(axes: Any, diagram: RankDiagram, colors: Sequence[str], room: float, text: dict[str, Any]) -> None:
    """Write the better half on the left, from the top, and the others on the right, so that no lines cross."""
    count, left = len(diagram.names), math.ceil(len(diagram.names) / 2)
    first = BAR * len(diagram.bars) + BELOW + NAME / 2
    for place, (name, rank, color) in enumerate(zip(diagram.names, diagram.ranks, colors, strict=True)):
        is_left = place < left
        height = -(first + NAME * (place if is_left else count - 1 - place))
        edge = 1 - 0.08 * room if is_left else count + 0.08 * room
        axes.plot([rank, rank, edge], [0, height, height], color=color, linewidth=1.0, solid_joinstyle="miter")
        side = {"horizontalalignment": "right" if is_left else "left", **text}
        gap = 0.05 * room
        shown = f"{name}  {rank:.2f}" if is_left else f"{rank:.2f}  {name}"
        axes.text(edge - gap if is_left else edge + gap, height, shown, color=color, fontweight="bold", **side)
