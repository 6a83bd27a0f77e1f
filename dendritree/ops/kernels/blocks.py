"""Between samples as they come and tiles of samples."""

from __future__ import annotations

from .files import part
from .memory import at
from .tiles import PIECE, item, lanes, number, store, stride, transpose_square


@part
def to_tiles(x, sample_stride, feature_stride, n, count, tiles, zero):
    """Tiles of the first `count` features of `n` samples, and zeros for the samples that a tile has beyond."""
    if n < lanes(zero):
        for f in range(count):
            store(tiles + f * stride(zero), zero)
    if sample_stride != item(zero):
        transpose(x, sample_stride, n, count, tiles, stride(zero), zero)
        return
    for f in range(count):  # samples lie side by side already
        source, target = at(x + f * feature_stride, number(zero)), at(tiles + f * stride(zero), number(zero))
        for s in range(n):
            target[s] = source[s]


@part
def from_tiles(tiles, count, x, sample_stride, n, zero):
    """Write `count` tiles to `n` samples of as many features."""
    transpose(tiles, stride(zero), count, n, x, sample_stride, zero)


@part
def transpose(source, source_stride, rows, columns, target, target_stride, zero):
    """target[c, r] = source[r, c], squares of PIECE x PIECE numbers together; strides in bytes."""
    square_rows, square_columns = rows // PIECE * PIECE, columns // PIECE * PIECE
    for c in range(0, square_columns, PIECE):
        for r in range(0, square_rows, PIECE):
            here, there = source + r * source_stride + c * item(zero), target + c * target_stride + r * item(zero)
            transpose_square(here, source_stride, there, target_stride, zero)
    for r in range(rows):
        row = at(source + r * source_stride, number(zero))
        for c in range(0 if r >= square_rows else square_columns, columns):
            at(target + c * target_stride, number(zero))[r] = row[c]
