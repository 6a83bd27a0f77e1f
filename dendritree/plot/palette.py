"""The colors of figures: light and dark themes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """The colors of a figure, except for those of models."""

    name: str
    paper: str
    ink: str
    pale: str
    """For ticks, small words and thin lines."""
    grid: str
    positive: str
    negative: str
    zero: str
    """Between the two, for lines: close to the background, but visible on it."""
    field: str
    """Between the two, for areas."""
    dropped: str
    """Red, as in the paper's diagram."""

    def adapt(self, color: str) -> str:
        """A color chosen for a white background, adapted to be readable on this theme's.

        >>> THEMES["light"].adapt("#0072B2"), THEMES["dark"].adapt("#0072B2")
        ('#0072B2', '#73b1d5')
        """
        if self.name == "light":
            return color
        parts = (int(color[place : place + 2], 16) for place in (1, 3, 5))
        return "#" + "".join(f"{round(part + 0.45 * (255 - part)):02x}" for part in parts)


LIGHT = Theme(
    "light", "#ffffff", "#333840", "#6b7280", "#e6e8eb", "#0063a8", "#d98200", "#d3d8de", "#f1f3f5", "#d4002a"
)
DARK = Theme("dark", "#14181f", "#e6e9ee", "#9aa4b2", "#2b323d", "#56b4e9", "#f0b03f", "#3d4653", "#232a34", "#ff5d6c")
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}
"""Themes by name, the values of `theme=`."""
