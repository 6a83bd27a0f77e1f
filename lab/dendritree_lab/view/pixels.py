"""From a drawing to the input of a model, through the steps that its training images went through.

How things are drawn in the user's own data set is measured on its images, so that a drawing can look like them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dendritree.errors import ShapeError

from ..data import Scaling, upsample

Floats = npt.NDArray[np.float64]

RASTER = 112
"""Minimum pixels of the longer side of a drawing: four for each of MNIST's 28, besides the canvas's antialiasing."""
MNIST_BOX = 20 / 28
"""Share of an image that MNIST's digits were scaled to fill, before their center of mass was moved to the middle."""
TYPICAL = 0.75
"""Share of the canvas that drawings typically fill."""
INK_WIDTH = {8: 0.16}
"""Width of the strokes in the images themselves, as a share of the side: scikit-learn's digits, by their mean ink."""
MNIST_INK_WIDTH = 0.081
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


@dataclass(frozen=True)
class Pixels:
    """The images that a model was trained on, and how they were prepared.

    >>> Pixels((1, 28, 28), Scaling((0.1307,), (0.3081,)), side=32).raster, Pixels((1, 28, 28), side=32).in_features
    ((112, 112), 1024)
    """

    image_shape: tuple[int, int, int]
    """(channels, height, width) of the images in the data set; a drawing is gray in every channel."""
    scaling: Scaling | None = None
    """How they were shifted and scaled; None for the pixels of the data set."""
    side: int | None = None
    """The side that images of 28x28 were enlarged to; 32 in the paper."""
    as_image: bool = False
    """Whether the model takes (channels, height, width) instead of a row of pixels."""
    strokes: Strokes | None = None
    """How things are drawn in the user's own images; None for the built-in data sets, for which this is known."""
    span: tuple[float, float] = (0.0, 1.0)
    """The darkest and the lightest pixel in the data set."""

    def __post_init__(self) -> None:
        if self.side is not None and self.image_shape != (1, 28, 28):
            raise ShapeError(f"only images of 28x28 are enlarged: got {self.image_shape}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of what the model sees."""
        return self.image_shape if self.side is None else (1, self.side, self.side)

    @property
    def in_features(self) -> int:
        """The number of pixels that the model sees."""
        return math.prod(self.shape)

    @property
    def raster(self) -> tuple[int, int]:
        """Height and width of a drawing: a multiple of the image, so that an image drawn as squares is recovered."""
        _, height, width = self.image_shape
        scale = max(1, -(-RASTER // max(height, width)))
        return height * scale, width * scale

    @property
    def drawn(self) -> Strokes:
        """How things are drawn in the images: scikit-learn's 8x8 digits extend from edge to edge."""
        if self.strokes is not None:
            return self.strokes
        _, height, width = self.image_shape
        box = 1.0 if self.image_shape == (1, 8, 8) else MNIST_BOX
        # Two digits side by side are not one object that can be centered.
        return Strokes(box, height == width, INK_WIDTH.get(min(height, width), MNIST_INK_WIDTH), inverted=False)

    @property
    def brush(self) -> float:
        """Width of a brush, as a share of the drawing's shorter side, that gives strokes as wide as in the images."""
        scales = self.strokes is None or self.drawn.centered
        return self.drawn.width * (TYPICAL / self.drawn.box if scales else 1.0)

    def shrink(self, drawing: npt.NDArray[np.uint8], *, centered: bool) -> npt.NDArray[np.float32]:
        """The image, (height, width) in [0, 1], of a drawing with 0 for paper and 255 for ink.

        Args:
            drawing: pixels of shape `raster`.
            centered: scale it to the box that digits fill and move its center of mass to the middle, as in MNIST, as
                far as all of it stays inside.
        """
        if drawing.shape != self.raster:
            raise ShapeError(f"a drawing must have {self.raster[0]} x {self.raster[1]} pixels: got {drawing.shape}")
        ink = drawing.astype(np.float64) / 255
        spans = [(0.0, float(length)) for length in ink.shape]
        if centered and self.drawn.centered and drawing.any():
            spans = self._centered(ink)
        return resample(resample(ink, *spans[0], self.image_shape[1]).T, *spans[1], self.image_shape[2]).T.astype("f4")

    def _centered(self, ink: Floats) -> list[tuple[float, float]]:
        """The part of the drawing that the image shows, possibly beyond its edges: start and stop on each axis."""
        edges, middles = [], []
        for axis in (0, 1):
            profile = ink.sum(axis=1 - axis)
            inked = np.flatnonzero(profile)
            edges.append((int(inked[0]), int(inked[-1]) + 1))
            middles.append(float(profile @ (np.arange(len(profile)) + 0.5) / profile.sum()))
        longest = max(stop - start for start, stop in edges)
        # Image pixels per pixel of the drawing, the same on both axes.
        scale = self.drawn.box * min(self.image_shape[1:]) / longest
        spans = []
        for (start, stop), middle, length in zip(edges, middles, self.image_shape[1:], strict=True):
            reach = length / scale / 2
            middle = min(max(middle, stop - reach), start + reach)
            spans.append((middle - reach, middle + reach))
        return spans

    def to_unit(self, images: Tensor) -> Tensor:
        """Images (n, pixels) in [0, 1], resized to what the model sees, still in [0, 1]."""
        return images if self.side is None else upsample(images, self.side)

    def of_data(self, x: Tensor) -> Tensor:
        """Images (n, pixels) of the data set in the form of the page: in [0, 1], with 0 for paper and 1 for ink.

        >>> dark = Strokes(1.0, False, 0.1, inverted=True)
        >>> Pixels((1, 1, 2), strokes=dark, span=(0, 200)).of_data(torch.tensor([[0, 200]]))
        tensor([[1., 0.]])
        """
        low, high = self.span
        unit = x if self.span == (0.0, 1.0) else (x - low) / (high - low)
        return 1 - unit if self.drawn.inverted else unit

    def to_data(self, unit: Tensor) -> Tensor:
        """The inverse of `of_data`."""
        low, high = self.span
        x = 1 - unit if self.drawn.inverted else unit
        return x if self.span == (0.0, 1.0) else low + (high - low) * x

    def to_input(self, images: Tensor) -> Tensor:
        """The model's input for images (n, pixels) in the form of the page.

        >>> Pixels((1, 28, 28), side=32, as_image=True).to_input(torch.zeros(2, 784)).shape
        torch.Size([2, 1, 32, 32])
        """
        x = self.to_data(images)
        x = self.to_unit(x if self.scaling is None else self.scaling(x))
        return x.reshape(len(x), *self.shape) if self.as_image else x

    def of_drawing(self, drawing: npt.NDArray[np.uint8], *, centered: bool) -> Tensor:
        """The image (1, pixels) in [0, 1] of a drawing, the same in every channel."""
        gray = torch.from_numpy(self.shrink(drawing, centered=centered)).clamp_(0, 1).reshape(1, -1)
        return gray.repeat(1, self.image_shape[0])

    def describe(self) -> str:
        """The preparation steps, in words.

        >>> Pixels((1, 28, 28), Scaling((0.1307,), (0.3081,)), side=32).describe()
        '28x28 pixels, enlarged to 32x32, normalized with mean 0.1307 and deviation 0.3081'
        """
        steps = [f"{self.image_shape[1]}x{self.image_shape[2]} pixels"]
        if self.side is not None:
            steps.append(f"enlarged to {self.side}x{self.side}")
        if self.scaling is None:
            low, high = self.span
            steps.append(f"from {low:g} to {high:g}")
        else:
            mean, sd = (", ".join(f"{value:.4g}" for value in each) for each in (self.scaling.mean, self.scaling.sd))
            steps.append(f"normalized with mean {mean} and deviation {sd}")
        return ", ".join(steps)


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


def resample(values: Floats, start: float, stop: float, count: int) -> Floats:
    """Means of the rows of `values` over `count` equal parts of `start ... stop`; outside the rows, values are 0.

    >>> resample(np.array([[0.0], [1.0], [1.0], [0.0]]), 0, 4, 2).tolist()
    [[0.5], [0.5]]
    >>> resample(np.array([[1.0], [1.0]]), -1, 3, 4).tolist()
    [[0.0], [1.0], [1.0], [0.0]]
    """
    borders = np.linspace(start, stop, count + 1)
    rows = np.arange(len(values))
    overlap = np.minimum(borders[1:, None], rows + 1) - np.maximum(borders[:-1, None], rows)  # (parts, rows)
    return np.asarray(overlap.clip(0) @ values * (count / (stop - start)))
