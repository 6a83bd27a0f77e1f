"""Bars: a whole cut into shares, each with its name, the largest on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .chart import Chart, Line
from .palette import Look

__all__ = ["SHARES_LEFT", "add_shares", "shares_height"]

INK = "#333840"
SHARES_LEFT = 132  # pixels for the names
BAR_HEIGHT = 20


def shares_height(chart: Chart) -> int:
    """Pixels of the panel.

    >>> shares_height(Chart("empty", "", "", "", (), "shares"))
    20
    """
    return BAR_HEIGHT * max(1, max((len(panel.lines) for panel in chart.panels), default=0))


def add_shares(
    axes: Any, x_label: str, lines: Sequence[Line], models: Mapping[tuple[str, int], Look], size: float
) -> None:
    """Draw the bars into the axes, with their figures at their ends."""
    places = range(len(lines) - 1, -1, -1)
    colours = [models[line.family, line.size].colour for line in lines]
    values = [line.x[0] for line in lines]
    axes.barh(places, values, height=0.62, color=colours)
    axes.set_yticks(list(places), [line.label for line in lines])
    axes.set_xlim(0, 1.18 * max([*values, 0.01]))  # room for the figures
    axes.set_ylim(-0.5, len(lines) - 0.5)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.tick_params(labelsize=size)
    axes.set_xlabel(x_label, labelpad=3)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            f"{value:.0%}", (value, place), (2.5, 0), textcoords="offset points", fontsize=size, color=INK, va="center"
        )
