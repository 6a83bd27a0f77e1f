"""Between samples as they come and tiles of samples."""

from __future__ import annotations

from .core import at, part
from .tiles import PIECE, lanes, number, store, stride, transpose_square


@part
def to_tiles(x, sample_stride, feature_stride, n, count, tiles, zero):
    """Tiles of the first `count` features of `n` samples, and zeros for the samples that a tile has beyond."""
    one = number(zero)
    width, item = stride(zero), stride(zero) // lanes(zero)
    if n < lanes(zero):
        for f in range(count):
            store(tiles + f * width, zero)
    if sample_stride == item:  # samples lie side by side already
        for f in range(count):
            source, target = at(x + f * feature_stride, one), at(tiles + f * width, one)
            for s in range(n):
                target[s] = source[s]
        return
    squares, f = n // PIECE * PIECE, 0
    while f + PIECE <= count:
        for s in range(0, squares, PIECE):
            transpose_square(x + s * sample_stride + f * item, sample_stride, tiles + f * width + s * item, width, zero)
        f += PIECE
    target = at(tiles, one)
    for s in range(n):
        source = at(x + s * sample_stride, one)
        for g in range(0 if s >= squares else f, count):
            target[g * lanes(zero) + s] = source[g]


@part
def from_tiles(tiles, count, x, sample_stride, n, zero):
    """Write `count` tiles to `n` samples of as many features."""
    one = number(zero)
    width, item = stride(zero), stride(zero) // lanes(zero)
    squares, f = n // PIECE * PIECE, 0
    while f + PIECE <= count:
        for s in range(0, squares, PIECE):
            transpose_square(tiles + f * width + s * item, width, x + s * sample_stride + f * item, sample_stride, zero)
        f += PIECE
    source = at(tiles, one)
    for s in range(n):
        target = at(x + s * sample_stride, one)
        for g in range(0 if s >= squares else f, count):
            target[g] = source[g * lanes(zero) + s]
