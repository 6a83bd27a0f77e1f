"""Depths of points in boxes, hard and smooth, and the gradients of the smooth ones."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .exponential import EXACT, exp
from .memory import at, fill
from .parts import part
from .products import TILE, add_gradients

PLACES = 64
"""Inputs processed side by side, each position with its own minimum."""


@part
def nearest_faces(x, low, high, held, found, start, n):
    """Take the distances of the next `n` inputs to their nearer face where they are the least so far, or NaN.

    `found` becomes `start`, the first input of this run. A NaN is never replaced: it is the minimum.
    """
    for j in range(n):
        below, above, least = x[j] - low[j], high[j] - x[j], held[j]
        distance = below if (below <= above) | (below != below) else above
        keep = (least <= distance) | (least != least)
        held[j] = least if keep else distance
        found[j] = found[j] if keep else start


@part
def least_distance(x, low, high, held, found, inputs, item, one):
    """The depth in one box, and the first input that attains it."""
    fill(held, one / (one - one), PLACES)
    fill(found, np.int32(0), PLACES)
    for i in range(0, inputs, PLACES):
        at_i, n = i * item, min(PLACES, inputs - i)
        nearest_faces(at(x + at_i, one), at(low + at_i, one), at(high + at_i, one), held, found, np.int32(i), n)
    least, first = held[0], np.int64(found[0])
    for j in range(1, min(PLACES, inputs)):
        distance, place = held[j], np.int64(found[j]) + j
        if distance != distance:
            closer, equal = least == least, least != least
        else:
            closer, equal = distance < least, distance == least
        if closer or (equal and place < first):
            least, first = distance, place
    return least, first


def depths(x, low, high, y, nearest, scratch, places, inputs, boxes, sample, last_sample, item, one):
    """y[s, k] and the input it comes from, for samples `sample ... last_sample - 1`.

    `scratch` holds PLACES numbers, `places` PLACES 32-bit integers.
    """
    out, index, held, found = at(y, one), at(nearest, np.int64(0)), at(scratch, one), at(places, np.int32(0))
    for s in range(sample, last_sample):
        for k in range(boxes):
            box = k * inputs * item
            least, first = least_distance(x + s * inputs * item, low + box, high + box, held, found, inputs, item, one)
            out[s * boxes + k] = least
            index[s * boxes + k] = first


@njit(**EXACT)
def behind(least, start, end):
    """The least distance minus the distance from `start` to `end`: 0 or less.

    The distance is computed first, exactly as for `least`: in another order, its rounding would be that of the
    coordinates.
    """
    return least - (end - start)


@part
def weigh(x, low, high, least, per_t, n, zero):
    """The sum of exp((least - distance) / t) over both faces of `n` inputs."""
    total = zero
    for j in range(n):
        total += exp(behind(least, low[j], x[j]) * per_t) + exp(behind(least, x[j], high[j]) * per_t)
    return total


def smooth_depths(x, low, high, y, leasts, totals, scratch, places, inputs, boxes, sample, last_sample, item, t, one):
    """y[s, k] = least - t log(total), total = sum exp((least - distance) / t) over all faces; all three are kept."""
    out, outs_least, outs_total = at(y, one), at(leasts, one), at(totals, one)
    held, found = at(scratch, one), at(places, np.int32(0))
    zero, infinity = one - one, one / (one - one)
    for s in range(sample, last_sample):
        for k in range(boxes):
            row, box = x + s * inputs * item, k * inputs * item
            least, _ = least_distance(row, low + box, high + box, held, found, inputs, item, one)
            total = one
            if -infinity < least < infinity:
                total = weigh(at(row, one), at(low + box, one), at(high + box, one), least, one / t, inputs, zero)
            outs_least[s * boxes + k] = least
            outs_total[s * boxes + k] = total
            out[s * boxes + k] = least - t * math.log(total)


@part
def pull_faces(x, of_x, pair, about, held, n, one):
    """The `pull` function of `add_gradients`: one sample's gradients of low and of high."""
    leasts, gy, per_t = about
    least, g = leasts[pair], gy[pair]
    for j in range(n):
        to_low = g * exp(behind(least, held[j], x[j]) * per_t)
        to_high = g * exp(behind(least, x[j], held[TILE + j]) * per_t)
        of_x[j] += to_low - to_high
        held[2 * TILE + j] -= to_low
        held[3 * TILE + j] += to_high


def smooth_depths_backward(
    x, low, high, leasts, gy, of_x, of_low, of_high, scratch, inputs, boxes, samples, first, last, item, t, one
):
    """Add to the gradients of inputs `first ... last - 1`; `scratch` holds 4 TILE numbers.

    `gy` are gradients of the depths, divided by their totals.
    """
    addresses, sizes = (x, low, high, of_x, of_low, of_high), (inputs, boxes, samples)
    about = (at(leasts, one), at(gy, one), one / t)
    add_gradients(pull_faces, about, addresses, sizes, first, last, scratch, item, one)
