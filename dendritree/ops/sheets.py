"""How the images of a convolution are divided into blocks and laid out in planes for the fused kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .patches import PatchGrid

__all__ = ["Images", "block_tiles", "choose_sheet", "planes_of", "row_shifts"]

PLANES = 1 << 19
"""Maximum bytes of the planes of a block, unless one image has more: twice as many stay in the L2 cache."""

LEAST_BLOCKS = 8
"""Minimum number of blocks for threads to share, if there are as many images."""

LINE = 64
"""Bytes per cache line."""


class Sheet(NamedTuple):
    """How the images of a block are laid out in planes: see `cpu/layout.hpp`."""

    images: int
    """Images per block."""
    channels: int
    height: int
    width: int
    top: int
    left: int
    """Zeros above and left of an image."""
    row_step: int
    column_step: int
    """The strides; a channel has as many planes as their product."""
    rows: int
    columns: int
    """Rows from one image to the next, and numbers from one row to the next, in a plane."""
    plane: int
    """Numbers from one plane to the next."""
    out_rows: int
    out_columns: int


class Images(NamedTuple):
    """What is convolved: images of one size, and their patches."""

    grid: PatchGrid
    batch: int
    height: int
    width: int


def choose_sheet(images: Images, lengths: Sequence[int], cost_of_a_tile: int, item: int) -> tuple[Sheet, int]:
    """The sheet and tile length with the least work on positions that are not used, from the sizes alone.

    >>> images = Images(PatchGrid(64, (3, 3), padding=(1, 1, 1, 1)), 64, 16, 16)
    >>> sheet, lanes = choose_sheet(images, (16, 64, 128), 24, 4)
    >>> (sheet.rows, sheet.columns), sheet.images, lanes, block_tiles(sheet, lanes)
    ((17, 17), 4, 128, 9)
    """

    def cost(choice: tuple[Sheet, int]) -> int:
        sheet, lanes = choice
        return -(-images.batch // sheet.images) * block_tiles(sheet, lanes) * (lanes + cost_of_a_tile)

    return min(_choices(images, lengths, item), key=cost)


def _choices(images: Images, lengths: Sequence[int], item: int) -> Iterator[tuple[Sheet, int]]:
    for lanes in lengths:
        for each in range(1, max(1, images.batch // LEAST_BLOCKS) + 1):
            sheet = _sheet(images, each, lanes, item)
            if each > 1 and planes_of(sheet) * sheet.plane * item > PLANES:
                break
            yield sheet, lanes


def _sheet(images: Images, each: int, lanes: int, item: int) -> Sheet:
    """The sheet for `each` images per block."""
    grid, _, height, width = images
    left, right, top, bottom = grid.padding
    out_rows, out_columns = grid.counts(height, width)
    # The zeros after a row are also those before the next one; the same holds for images.
    rows = max(-(-(height + max(top, bottom)) // grid.stride[0]), out_rows)
    columns = max(-(-(width + max(left, right)) // grid.stride[1]), out_columns)
    sheet = Sheet(each, grid.channels, height, width, top, left, *grid.stride, rows, columns, 0, out_rows, out_columns)
    # Up to the last number that a tile reads, and the last pixel: with a stride, it may be one that no patch reads.
    read = block_tiles(sheet, lanes) * lanes + int(_shifts(grid, sheet).max())
    last_row = (each - 1) * rows + (top + height - 1) // grid.stride[0]
    filled = last_row * columns + (left + width - 1) // grid.stride[1] + 1
    # An odd number of lines: planes a power of two apart would evict each other from the L1 cache.
    lines = -(-max(read, filled) * item // LINE) | 1
    return sheet._replace(plane=lines * LINE // item)


def block_tiles(sheet: Sheet, lanes: int) -> int:
    """Tiles per block: up to the last position at which a patch begins."""
    last_row = (sheet.images - 1) * sheet.rows + sheet.out_rows - 1
    return -(-(last_row * sheet.columns + sheet.out_columns) // lanes)


def planes_of(sheet: Sheet) -> int:
    """Planes of a block."""
    return sheet.channels * sheet.row_step * sheet.column_step


def _shifts(grid: PatchGrid, sheet: Sheet) -> npt.NDArray[np.int64]:
    """The distance of the tile of each pixel of a patch from that of its first pixel, in its plane; (rows, columns)."""
    down, right = (np.arange(grid.kernel[axis]) * grid.dilation[axis] // grid.stride[axis] for axis in (0, 1))
    shifts: npt.NDArray[np.int64] = down[:, None] * sheet.columns + right
    return shifts


def row_shifts(grid: PatchGrid, sheet: Sheet) -> npt.NDArray[np.int64]:
    """For each input of a patch, the distance of its tile from the beginning of the planes, in numbers.

    >>> grid = PatchGrid(1, (2, 2))
    >>> row_shifts(grid, _sheet(Images(grid, 1, 4, 4), 1, 16, 4)).tolist()
    [0, 1, 4, 5]
    """
    phase_down, phase_right = (
        np.arange(grid.kernel[axis]) * grid.dilation[axis] % grid.stride[axis] for axis in (0, 1)
    )
    phase = phase_down[:, None] * sheet.column_step + phase_right  # (rows, columns) of a patch
    channel = np.arange(grid.channels)[:, None, None] * (sheet.row_step * sheet.column_step)
    shifts: npt.NDArray[np.int64] = ((channel + phase) * sheet.plane + _shifts(grid, sheet)).ravel()
    return shifts
