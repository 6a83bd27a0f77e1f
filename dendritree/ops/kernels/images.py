"""Conversion between images and planes: the tiles of a convolution without a copy of every patch.

A *plane* is a channel's pixels in one run of memory, image after image and row after row, with zeros between rows and
between images. In it, the patch at position q + 1 is the patch at position q, shifted by one number. So a tile is a run
of positions, and an input of the patch, for all of these positions, is the tile that starts a fixed distance further:
`rows` holds these distances. With a stride of s, a channel has s x s planes, each of every s-th pixel. Positions at the
end of a row, where no patch begins, are computed too, and skipped when outputs are written; their gradient is 0.
"""

from __future__ import annotations

import numpy as np

from .masks import sample_key
from .memory import UINT32, at
from .parts import part
from .tiles import lanes, number, store, stride


@part
def copy_planes(sheet, images, n, planes, is_fill, zero):
    """Fill planes with `n` images surrounded by zeros, or write planes back to images."""
    real, each = number(zero), sheet.row_step * sheet.column_step
    pixels, plane = at(images, real), at(planes, real)
    if is_fill:
        for i in range(sheet.channels * each * sheet.plane):
            plane[i] = real
    for image in range(n):
        for c in range(sheet.channels):
            for y in range(sheet.height):
                source = ((image * sheet.channels + c) * sheet.height + y) * sheet.width
                row, phase = divmod(y + sheet.top, sheet.row_step)
                target = (c * each + phase * sheet.column_step) * sheet.plane
                target += (image * sheet.rows + row) * sheet.columns
                if sheet.column_step == 1:
                    target += sheet.left
                    if is_fill:
                        for x in range(sheet.width):
                            plane[target + x] = pixels[source + x]
                    else:
                        for x in range(sheet.width):
                            pixels[source + x] = plane[target + x]
                    continue
                for x in range(sheet.width):
                    column, phase = divmod(x + sheet.left, sheet.column_step)
                    if is_fill:
                        plane[target + phase * sheet.plane + column] = pixels[source + x]
                    else:
                        pixels[source + x] = plane[target + phase * sheet.plane + column]


@part
def copy_outputs(sheet, y, neurons, count, first, n, outputs, is_read, zero):
    """Write the tiles of `count` neurons, positions from `first` on, to `n` images of outputs, or read them back.

    `y` is the address of the first of these neurons' outputs for the first image; an image has `neurons` outputs.
    """
    real, size = number(zero), sheet.out_rows * sheet.out_columns
    pixels, tiles = at(y, real), at(outputs, real)
    if is_read:
        for neuron in range(count):
            store(outputs + neuron * stride(zero), zero)
    position, end = first, first + lanes(zero)
    while position < end:
        line, column = divmod(position, sheet.columns)
        image, row = divmod(line, sheet.rows)
        if image >= n:
            return
        if row < sheet.out_rows and column < sheet.out_columns:
            run = min(sheet.out_columns - column, end - position)
            for neuron in range(count):
                there = (image * neurons + neuron) * size + row * sheet.out_columns + column
                here = neuron * lanes(zero) + position - first
                if is_read:
                    for i in range(run):
                        tiles[here + i] = pixels[there + i]
                else:
                    for i in range(run):
                        pixels[there + i] = tiles[here + i]
        position = (line + 1) * sheet.columns


@part
def position_keys(mask, sheet, first, image, zero):
    """Write the dropout keys of the positions of a tile: each is a separate sample, in the order of outputs."""
    keys = at(mask.keys, UINT32)
    for j in range(lanes(zero)):
        line, column = divmod(first + j, sheet.columns)
        row = line // sheet.rows * sheet.out_rows + line % sheet.rows
        sample = (image * sheet.out_rows + row) * sheet.out_columns + column
        keys[j] = sample_key(mask, np.uint32(sample))
