"""How pictures look: paper and ink, light and dark; figures that no other code sees; files written whole."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError, check_one_of, import_extra
from ..files import whole_file

__all__ = ["FORMATS", "THEMES", "Theme", "finish", "lighter", "new_figure", "style_axes", "theme_of", "two_sided"]

FORMATS = (".svg", ".png", ".pdf")
"""Files that pictures can be written to."""
DOTS_PER_INCH = 100
SMALL, NORMAL = 7.5, 8.5  # points


@dataclass(frozen=True)
class Theme:
    """The colours of a picture, apart from those of models, which the palette has."""

    name: str
    paper: str
    ink: str
    pale: str
    """Of ticks, small words and thin lines."""
    grid: str
    positive: str
    negative: str
    zero: str
    """Between the two, for lines: near the paper, but to be seen on it."""
    field: str
    """Between the two, for areas."""
    dropped: str
    """Red, as in the paper's diagram."""


THEMES = {
    "light": Theme(
        "light", "#ffffff", "#333840", "#6b7280", "#e6e8eb", "#0063a8", "#d98200", "#d3d8de", "#f1f3f5", "#d4002a"
    ),
    "dark": Theme(
        "dark", "#14181f", "#e6e9ee", "#9aa4b2", "#2b323d", "#56b4e9", "#f0b03f", "#3d4653", "#232a34", "#ff5d6c"
    ),
}
"""By name; what `theme=` takes."""


def theme_of(name: str) -> Theme:
    """The theme of a name.

    >>> theme_of("dark").paper
    '#14181f'
    """
    return THEMES[check_one_of("theme", name, THEMES)]


def new_figure(width: float, height: float, theme: Theme) -> Any:
    """A figure of that many inches that belongs to nobody else: pyplot does not know of it."""
    figures = import_extra("matplotlib.figure", extra="plot")
    return figures.Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor=theme.paper, layout="constrained")


def style_axes(axes: Any, theme: Theme, *, grid: bool = True, frame: bool = True) -> None:
    """Quiet axes. Everything is set on the axes themselves, so that a figure looks the same whoever draws it later."""
    axes.set_facecolor("none")
    axes.spines[:].set_visible(False)
    if not frame:
        axes.set_xticks([])
        axes.set_yticks([])
    else:
        axes.spines[["left", "bottom"]].set_visible(True)
        axes.spines[:].set_color(theme.grid)
        axes.tick_params(colors=theme.pale, labelsize=SMALL, length=3)
        axes.set_axisbelow(True)
        axes.grid(grid, color=theme.grid, linewidth=0.8)
    for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
        label.set_color(theme.ink)
        label.set_fontsize(NORMAL)


def two_sided(theme: Theme, *, area: bool = False) -> Any:
    """The colour map of signed values: negative, zero, positive; of lines, or of areas."""
    colors, zero = import_extra("matplotlib.colors", extra="plot"), theme.field if area else theme.zero
    return colors.LinearSegmentedColormap.from_list("two-sided", [theme.negative, zero, theme.positive])


def one_sided(theme: Theme) -> Any:
    """The colour map of counts: from the paper to the colour of positive values."""
    colors = import_extra("matplotlib.colors", extra="plot")
    return colors.LinearSegmentedColormap.from_list("one-sided", [theme.field, theme.positive])


def lighter(colour: str, theme: Theme) -> str:
    """A colour of the palette, made for white paper, as it is readable on this theme's.

    >>> lighter("#0072B2", THEMES["light"]), lighter("#0072B2", THEMES["dark"])
    ('#0072B2', '#73b1d5')
    """
    if theme.name == "light":
        return colour
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + 0.45 * (255 - part)):02x}" for part in parts)


def finish(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    """Write a figure to a file if a path is given, whole or not at all, and return it. Its format is the suffix."""
    if path is None:
        return figure
    target = Path(path)
    check_suffix(target)
    matplotlib = import_extra("matplotlib", extra="plot")
    metadata: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    kind = target.suffix.lower()
    # Text stays text in SVG files, and the same picture has the same bytes
    settings = {"svg.fonttype": "none", "svg.hashsalt": target.stem}
    with whole_file(target, "a picture") as scratch, matplotlib.rc_context(settings):
        figure.savefig(scratch, format=kind[1:], dpi=2 * DOTS_PER_INCH, metadata=metadata[kind])
    return figure


def check_suffix(path: str | os.PathLike[str] | None) -> None:
    """Refuse a path whose format nobody draws, before anything is drawn."""
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise OptionError(f"a picture's path must end in {', '.join(FORMATS)}: got {str(path)!r}")
