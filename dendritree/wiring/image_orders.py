"""Wirings for images: neurons read all pixels, in an order that keeps neighbors together."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

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
            reader = f"{kind} {name!r}" if name else "a picture"
            raise ShapeError(
                f"{reader} takes a square image unless image_shape is given: got {in_features} inputs; "
                f"{side * side} or {(side + 1) ** 2} would fit"
            )
        return 1, side, side
    if math.prod(shape) != in_features:
        raise ShapeError(f"image_shape must hold all inputs: got {shape}, {math.prod(shape)} pixels for {in_features}")
    return shape


@dataclass(frozen=True)
class ImageOrder(Wiring):
    """Base of wirings in which every neuron reads all pixels, in one order."""

    image_shape: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The pixels in this wiring's order, for each neuron."""
        _, height, width = image_of(self.image_shape, in_features, self.name)
        pixel = np.arange(in_features, dtype=np.int32)
        channel, place = np.divmod(pixel, np.int32(height * width))
        y, x = np.divmod(place, np.int32(width))
        return np.lexsort(self.keys(channel, y, x)[::-1]).astype(np.int32)[rank_in_group(forest.neuron_of_synapse)]

    @abstractmethod
    def keys(self, channel: IntArray, y: IntArray, x: IntArray) -> tuple[npt.NDArray[Any], ...]:
        """The keys that pixels are sorted by, the most important first."""


@dataclass(frozen=True)
class Patches(ImageOrder):
    """Square patch after square patch, all channels of a patch together.

    Args:
        image_shape: (channels, height, width); a square image of one channel by default.
        side: of a patch, in pixels. Patches at the right and lower edge may be smaller.

    >>> Patches(side=2).index(Forest.grow(4, fan_in=16), 16).tolist()[:8]
    [0, 1, 4, 5, 2, 3, 6, 7]
    """

    name: ClassVar[str] = "patches"
    side: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("side", self.side)

    def keys(self, channel: IntArray, y: IntArray, x: IntArray) -> tuple[IntArray, ...]:
        """Patch, then as rows."""
        return y // self.side, x // self.side, channel, y, x


@dataclass(frozen=True)
class Morton(ImageOrder):
    """Along a Z-curve: patches of patches of patches, so that every subtree sees a compact region.

    >>> Morton().index(Forest.grow(2, fan_in=16), 16).tolist()[:8]
    [0, 1, 4, 5, 2, 3, 6, 7]
    """

    name: ClassVar[str] = "morton"

    def keys(self, channel: IntArray, y: IntArray, x: IntArray) -> tuple[npt.NDArray[Any], ...]:
        """The bits of row and column, interleaved."""
        code, wide, high = np.zeros(len(x), dtype=np.int64), x.astype(np.int64), y.astype(np.int64)
        for bit in range(31):
            code |= ((wide >> bit) & 1) << (2 * bit) | ((high >> bit) & 1) << (2 * bit + 1)
        return code, channel
