"""What all figures share: figures that are not registered with pyplot, plain axes, color maps, and file output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionError, check_one_of, import_extra
from ..files import whole_file
from .palette import THEMES, Theme

FORMATS = (".svg", ".png", ".pdf")
"""Suffixes of the files that figures can be written to."""
DOTS_PER_INCH = 100
SMALL, NORMAL = 7.5, 8.5  # points


class Picture:
    """The theme and the file of a figure, both checked before anything is drawn.

    >>> Picture("dark", None).theme.paper
    '#14181f'
    """

    def __init__(self, theme: str, path: str | os.PathLike[str] | None) -> None:
        self.theme = THEMES[check_one_of("theme", theme, THEMES)]
        self.path = None if path is None else Path(path)
        if self.path and self.path.suffix.lower() not in FORMATS:
            raise OptionError(f"a picture's path must end in {', '.join(FORMATS)}: got {str(path)!r}")

    def figure(self, width: float, height: float) -> Any:
        """A figure of this size in inches, not registered with pyplot."""
        figures = import_extra("matplotlib.figure", extra="plot")
        options = {"facecolor": self.theme.paper, "layout": "constrained"}
        return figures.Figure(figsize=(width, height), dpi=DOTS_PER_INCH, **options)

    def axes(self, given: Any, width: float, height: float) -> Any:
        """The given axes, or those of a new figure."""
        return self.figure(width, height).add_subplot() if given is None else given

    def finish(self, figure: Any) -> Any:
        """Write the figure if there is a path, atomically and in the format of its suffix; return the figure."""
        if self.path is None:
            return figure
        matplotlib = import_extra("matplotlib", extra="plot")
        metadata: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        kind = self.path.suffix.lower()
        # Text stays text in SVG files, and the same figure always gives the same bytes.
        settings = {"svg.fonttype": "none", "svg.hashsalt": self.path.stem}
        with whole_file(self.path, "a picture") as scratch, matplotlib.rc_context(settings):
            figure.savefig(scratch, format=kind[1:], dpi=2 * DOTS_PER_INCH, metadata=metadata[kind])
        return figure


def style_axes(axes: Any, theme: Theme, *, frame: bool = True) -> None:
    """Make axes plain. Everything is set on the axes themselves, so that a figure looks the same everywhere."""
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
        axes.grid(True, color=theme.grid, linewidth=0.8)
    for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
        label.set_color(theme.ink)
        label.set_fontsize(NORMAL)


def show_size(value: float) -> str:
    """Format a size for an axis.

    >>> [show_size(value) for value in (128, 2000, 50_000, 1_000_000, 2_500_000, 3e9)]
    ['128', '2k', '50k', '1M', '2.5M', '3B']
    """
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{sign}{abs(value) / unit:g}{letter}"
    return f"{sign}{abs(value):g}"


def caption(axes: Any, text: str, theme: Theme, *, size: float = SMALL, pad: float = 3) -> None:
    """Add a small pale title."""
    axes.set_title(text, fontsize=size, color=theme.pale, pad=pad)


def draw_image(axes: Any, image: Any, theme: Theme, *, colors: Any, ends: tuple[float, float] | None = None) -> Any:
    """Show values per pixel; `ends` are the limits of the color scale."""
    low, high = ends or (float(image.min()), float(image.max()))
    drawn = axes.imshow(image, cmap=colors, vmin=low, vmax=high, interpolation="nearest")
    style_axes(axes, theme, frame=False)
    return drawn


def draw_signed(axes: Any, image: Any, theme: Theme) -> Any:
    """Show signed values per pixel, with zero in the middle of the color scale."""
    most = float(np.abs(image).max()) or 1.0
    return draw_image(axes, image, theme, colors=two_sided(theme, area=True), ends=(-most, most))


def two_sided(theme: Theme, *, area: bool = False) -> Any:
    """The color map for signed values: negative, zero, positive; for lines, or for areas."""
    return _color_map("two-sided", theme.negative, theme.field if area else theme.zero, theme.positive)


def one_sided(theme: Theme) -> Any:
    """The color map for counts: from the background to the color of positive values."""
    return _color_map("one-sided", theme.field, theme.positive)


def _color_map(name: str, *colors: str) -> Any:
    return import_extra("matplotlib.colors", extra="plot").LinearSegmentedColormap.from_list(name, list(colors))


def color_bar(axes: Any, drawn: Any, theme: Theme, *, size: float = SMALL - 1, **options: Any) -> Any:
    """Add a color scale next to the axes, without a frame."""
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.03, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.pale, labelsize=size, length=0)
    return bar


def image_bar(axes: Any, drawn: Any, theme: Theme) -> None:
    """Add a color scale next to an image, with integer ticks for counts."""
    bar = color_bar(axes, drawn, theme, shrink=0.8, aspect=22)
    whole = np.issubdtype(np.asarray(drawn.get_array()).dtype, np.integer)
    bar.locator = import_extra("matplotlib.ticker", extra="plot").MaxNLocator(5, integer=whole)
    bar.update_ticks()
