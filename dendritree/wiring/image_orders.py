"""Inputs that form an image, and the wiring in which neurons read all pixels with neighbors together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import OptionError, ShapeError, check_int
from ..tree import Forest, IntArray
from .interface import Wiring, rank_in_group


def check_image_shape(shape: Any) -> tuple[int, int, int] | None:
    """None, or (channels, height, width); (height, width) is one channel."""
    if shape is None:
        return None
    try:
        sizes = tuple(check_int("image_shape", size) for size in shape)
    except TypeError:
        sizes = ()
    if len(sizes) not in (2, 3):
        raise OptionError(f"image_shape must be (channels, height, width) or (height, width): got {shape!r}")
    return (1, *sizes) if len(sizes) == 2 else sizes  # type: ignore[return-value]


def image_of(
    shape: tuple[int, int, int] | None, in_features: int, name: str = "", *, kind: str = "wiring"
) -> tuple[int, int, int]:
    """The image that the inputs form: as given, or a square one of one channel. `name` and `kind` are for errors."""
    if shape is None:
        side = math.isqrt(in_features)
        if side * side != in_features:
            reader = f"{kind} {name!r} is for images: it" if name else "a picture"
            raise ShapeError(
                f"{reader} takes a square image unless image_shape is given: got {in_features} inputs; "
                f"{side * side} or {(side + 1) ** 2} would fit"
            )
        return 1, side, side
    if math.prod(shape) != in_features:
        raise ShapeError(f"image_shape must hold all inputs: got {shape}, {math.prod(shape)} pixels for {in_features}")
    return shape


@dataclass(frozen=True)
class Morton(Wiring):
    """All pixels along a Z-curve: patches of patches of patches, so that every subtree sees a compact region.

    Args:
        image_shape: (channels, height, width); a square image of one channel by default.

    >>> Morton().index(Forest.grow(2, fan_in=16), 16).tolist()[:8]
    [0, 1, 4, 5, 2, 3, 6, 7]
    """

    name: ClassVar[str] = "morton"
    image_shape: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The pixels sorted by the interleaved bits of row and column, then by channel, for each neuron."""
        _, height, width = image_of(self.image_shape, in_features, self.name)
        channel, place = np.divmod(np.arange(in_features, dtype=np.int64), height * width)
        y, x = np.divmod(place, width)
        code = np.zeros(in_features, dtype=np.int64)
        for bit in range(31):
            code |= ((x >> bit) & 1) << (2 * bit) | ((y >> bit) & 1) << (2 * bit + 1)
        return np.lexsort((channel, code)).astype(np.int32)[rank_in_group(forest.neuron_of_synapse)]
