"""How things are drawn in a data set, measured on its images, so that a drawing on the page can look like them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

INK = 0.3
"""Fraction of full ink from which a pixel belongs to the drawing."""
STEADY = 0.04
"""Images whose centers of mass vary by less than this fraction of the side were centered."""
THINNEST, THICKEST = 0.03, 0.4


@dataclass(frozen=True)
class Strokes:
    """The position and line width of drawings in images, and whether they are dark on light paper."""

    box: float
    """Fraction of the shorter side that a drawing fills."""
    centered: bool
    """Whether the center of mass is in the middle of every image."""
    width: float
    """Line width, as a fraction of the shorter side."""
    inverted: bool
    """Whether the paper is light and the ink dark."""


def measure_strokes(images: npt.NDArray[np.floating]) -> Strokes:
    """Measure images (n, channels, height, width) in [0, 1].

    A line of width w and length l has an area of w l and an outline of about 2 l; the outline is the sum of all steps
    from pixel to pixel, which is 4 / pi times too long on average over all directions.

    >>> images = np.zeros((3, 1, 20, 20))
    >>> images[:, :, 5:15, 8:12] = 1
    >>> measure_strokes(images)
    Strokes(box=0.5, centered=True, width=0.182, inverted=False)
    """
    gray = images.mean(1)
    rim = np.concatenate([gray[:, 0], gray[:, -1], gray[:, :, 0], gray[:, :, -1]], axis=1)
    inverted = images.shape[1] == 1 and bool(np.median(rim) > 0.5)
    ink = 1 - gray if inverted else gray
    side = min(ink.shape[1:])
    drawn = ink > INK * max(float(ink.max()), 1e-6)
    drawn = drawn[drawn.any((1, 2))]
    extents = [[np.ptp(np.flatnonzero(each.any(axis))) + 1 for axis in (0, 1)] for each in drawn] or [[side, side]]
    box = float(np.median(np.max(extents, axis=1))) / side
    mass = ink.sum((1, 2)).clip(1e-6)
    centers = [
        (ink.sum(2 - axis) * (np.arange(ink.shape[1 + axis]) + 0.5)).sum(1) / mass / ink.shape[1 + axis] - 0.5
        for axis in (0, 1)
    ]
    centered = images.shape[1] == 1 and bool(max(float(np.abs(center).mean()) for center in centers) < STEADY)
    steps = sum(float(np.abs(np.diff(ink, axis=axis)).sum()) for axis in (1, 2)) * np.pi / 4
    width = 2 * float(ink.sum()) / max(steps, 1e-6) / side
    return Strokes(min(box, 1.0), centered, round(float(np.clip(width, THINNEST, THICKEST)), 3), inverted)
