"""Conversion between rows of samples and tiles of samples."""

from __future__ import annotations

from .memory import at
from .parts import part
from .tiles import PIECE, item, lanes, number, store, stride, transpose_square


@part
def to_tiles(x, sample_stride, feature_stride, n, count, tiles, zero):
    """Write tiles of the first `count` features of `n` samples, padded with zeros to the length of a tile."""
    if n < lanes(zero):
        for f in range(count):
            store(tiles + f * stride(zero), zero)
    if sample_stride == item(zero):  # samples are contiguous already
        for f in range(count):
            source, target = at(x + f * feature_stride, number(zero)), at(tiles + f * stride(zero), number(zero))
            for s in range(n):
                target[s] = source[s]
        return
    squares_n, squares_count = transpose_squares(x, sample_stride, n, count, tiles, stride(zero), zero)
    target = at(tiles, number(zero))
    for s in range(n):
        source = at(x + s * sample_stride, number(zero))
        for f in range(squares_count if s < squares_n else 0, count):
            target[f * lanes(zero) + s] = source[f]


@part
def from_tiles(tiles, count, x, sample_stride, n, zero):
    """Write `count` tiles to `n` samples of as many features."""
    squares_count, squares_n = transpose_squares(tiles, stride(zero), count, n, x, sample_stride, zero)
    source = at(tiles, number(zero))
    for s in range(n):
        target = at(x + s * sample_stride, number(zero))
        for f in range(squares_count if s < squares_n else 0, count):
            target[f] = source[f * lanes(zero) + s]


@part
def transpose_squares(source, source_stride, rows, columns, target, target_stride, zero):
    """target[c, r] = source[r, c] in whole squares; return how many rows and columns. Strides are in bytes."""
    square_rows, square_columns = rows // PIECE * PIECE, columns // PIECE * PIECE
    for c in range(0, square_columns, PIECE):
        for r in range(0, square_rows, PIECE):
            here, there = source + r * source_stride + c * item(zero), target + c * target_stride + r * item(zero)
            transpose_square(here, source_stride, there, target_stride, zero)
    return square_rows, square_columns
