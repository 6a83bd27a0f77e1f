"""What the axes of figures share."""

from __future__ import annotations


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
