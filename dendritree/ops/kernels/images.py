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
from .memory import UINT32, at, fill
from .parts import part
from .tiles import item, lanes, load, number, store, stride, zeros


@part
def copy_run(source, target, n, zero):
    """Copy `n` numbers in pieces of 16, 8 or 4, the last of which overlaps the one before it.

    Rows of an image are short: with loops over numbers, a layer with four synapses per filter took a third longer.
    """
    if n >= 16:
        copy_pieces(source, target, n, zeros(number(zero), 16))
    elif n >= 8:
        copy_pieces(source, target, n, zeros(number(zero), 8))
    elif n >= 4:
        copy_pieces(source, target, n, zeros(number(zero), 4))
    else:
        here, there = at(source, number(zero)), at(target, number(zero))
        for i in range(n):
            there[i] = here[i]


@part
def copy_pieces(source, target, n, piece):
    """Copy at least a piece, in whole pieces."""
    for i in range(0, n, lanes(piece)):
        first = min(i, n - lanes(piece)) * item(piece)
        store(target + first, load(source + first, piece))


@part
def copy_planes(sheet, images, n, planes, is_fill, zero):
    """Fill planes with `n` images surrounded by zeros, or write planes back to images."""
    real, size, each = number(zero), item(zero), sheet.row_step * sheet.column_step
    pixels, plane = at(images, real), at(planes, real)
    if is_fill:
        fill(plane, real, sheet.channels * each * sheet.plane)
    source, width, columns, step = 0, sheet.width, sheet.columns, sheet.column_step
    first_row, first_phase = divmod(sheet.top, sheet.row_step)
    for image in range(n):
        for c in range(sheet.channels):
            row, phase = first_row, first_phase
            for _ in range(sheet.height):
                target = (c * each + phase * step) * sheet.plane + (image * sheet.rows + row) * columns
                if step > 1:
                    for x in range(width):
                        column, across = divmod(x + sheet.left, step)
                        if is_fill:
                            plane[target + across * sheet.plane + column] = pixels[source + x]
                        else:
                            pixels[source + x] = plane[target + across * sheet.plane + column]
                elif is_fill:
                    copy_run(images + source * size, planes + (target + sheet.left) * size, width, zero)
                else:
                    copy_run(planes + (target + sheet.left) * size, images + source * size, width, zero)
                source += width
                phase += 1
                if phase == sheet.row_step:
                    row, phase = row + 1, 0


@part
def copy_outputs(sheet, y, neurons, count, first, n, outputs, is_read, zero):
    """Write the tiles of `count` neurons, positions from `first` on, to `n` images of outputs, or read them back.

    `y` is the address of the first of these neurons' outputs for the first image; an image has `neurons` outputs.
    """
    size, out_rows, out_columns, end = item(zero), sheet.out_rows, sheet.out_columns, first + lanes(zero)
    first_line, first_column = divmod(first, sheet.columns)
    first_image, first_row = divmod(first_line, sheet.rows)
    for neuron in range(count):  # not line by line: the rows of a neuron follow each other in memory
        if is_read:
            store(outputs + neuron * stride(zero), zero)
        image, row, column, position = first_image, first_row, first_column, first
        while position < end and image < n:
            if row < out_rows and column < out_columns:
                run = min(out_columns - column, end - position)
                pixel = ((image * neurons + neuron) * out_rows + row) * out_columns + column
                there, here = y + pixel * size, outputs + (neuron * lanes(zero) + position - first) * size
                if is_read:
                    copy_run(there, here, run, zero)
                else:
                    copy_run(here, there, run, zero)
            position += sheet.columns - column
            row, column = row + 1, 0
            if row == sheet.rows:
                image, row = image + 1, 0


@part
def position_keys(mask, sheet, first, image, zero):
    """Write the dropout keys of the positions of a tile: each is a separate sample, in the order of outputs."""
    keys = at(mask.keys, UINT32)
    for j in range(lanes(zero)):
        line, column = divmod(first + j, sheet.columns)
        row = line // sheet.rows * sheet.out_rows + line % sheet.rows
        sample = (image * sheet.out_rows + row) * sheet.out_columns + column
        keys[j] = sample_key(mask, np.uint32(sample))
