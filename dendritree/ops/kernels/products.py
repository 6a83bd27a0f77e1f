"""Sums of log sigmoid(gain x - shift) over inputs, and their gradients.

log sigmoid(u) = min(u, 0) - log(1 + exp(-|u|)). The factors 1 + exp(-|u|) lie between 1 and 2, so a hundred of them
are multiplied before one logarithm is taken. What is kept of the product is q = product - 1: nothing is lost of
factors near 1.
"""

from __future__ import annotations

import math

from .core import at, fill
from .exponential import exp
from .files import jit, part

LANES = 128
"""Inputs that go side by side, each place with a product of its own."""

PANEL = 7 * LANES
"""Inputs between two logarithms: 7 factors in each place, 112 once 16 places are joined; 128 would overflow float32."""

JOINED = LANES // 16

TILE = 64
"""Inputs, and samples, of a tile of the way back: two tiles of float32 fill the first cache."""


@part
def multiply(x, gain, shift, scratch, n, zero, one):
    """The next factor for `n` places: q = (1 + q) (1 + e) - 1, and the sum of min(u, 0)."""
    for j in range(n):
        u = x[j] * gain[j] - shift[j]
        e = exp(-abs(u))
        q = scratch[j]
        scratch[j] = q + e * (one + q)
        scratch[LANES + j] += u if u < zero else zero


@jit
def log_products(x, gain, shift, y, scratch, inputs, dendrites, sample, last_sample, item, one):
    """y[s, d] for samples `sample ... last_sample - 1`; `scratch` holds 2 LANES numbers."""
    out, held, zero = at(y, one), at(scratch, one), one - one
    for s in range(sample, last_sample):
        for d in range(dendrites):
            total = zero
            for panel in range(0, inputs, PANEL):
                fill(held, zero, 2 * LANES)
                for i in range(panel, min(panel + PANEL, inputs), LANES):
                    row, weights = (s * inputs + i) * item, (d * inputs + i) * item
                    n = min(LANES, inputs - i)
                    multiply(at(x + row, one), at(gain + weights, one), at(shift + weights, one), held, n, zero, one)
                places = LANES
                while places > JOINED:
                    places //= 2
                    for j in range(places):
                        held[j] += held[places + j] * (one + held[j])
                for j in range(JOINED):
                    total -= math.log1p(held[j])
                for j in range(LANES):
                    total += held[LANES + j]
            out[s * dendrites + d] = total


@part
def share(x, of_x, g, scratch, n, zero, one):
    """One sample's gradients: of `of_x` in place, of gain and shift in the last two quarters of `scratch`."""
    for j in range(n):
        gain = scratch[j]
        u = x[j] * gain - scratch[TILE + j]
        e = exp(-abs(u))
        upper = one / (one + e)
        slope = g * (e * upper if u > zero else upper)  # sigmoid(-u); NaN comes from e
        of_x[j] += slope * gain
        scratch[2 * TILE + j] += slope * x[j]
        scratch[3 * TILE + j] += slope


@jit
def log_products_backward(
    x, gain, shift, gy, of_x, of_gain, of_shift, scratch, inputs, dendrites, samples, first, last, item, one
):
    """Add to the gradients of inputs `first ... last - 1`, tile by tile; `scratch` holds 4 TILE numbers.

    Tiles of samples are summed apart, so that rounding does not grow with the batch.
    """
    g, held, zero = at(gy, one), at(scratch, one), one - one
    for i in range(first, last, TILE):
        n = min(TILE, last - i)
        for tile in range(0, samples, TILE):
            for d in range(dendrites):
                weights = (d * inputs + i) * item
                copy(at(gain + weights, one), held, n, 0)
                copy(at(shift + weights, one), held, n, TILE)
                for j in range(2 * TILE, 4 * TILE):
                    held[j] = zero
                for s in range(tile, min(tile + TILE, samples)):
                    row = (s * inputs + i) * item
                    share(at(x + row, one), at(of_x + row, one), g[s * dendrites + d], held, n, zero, one)
                to_gain, to_shift = at(of_gain + weights, one), at(of_shift + weights, one)
                for j in range(n):
                    to_gain[j] += held[2 * TILE + j]
                for j in range(n):
                    to_shift[j] -= held[3 * TILE + j]


@part
def copy(source, target, n, place):
    """target[place ...] = source."""
    for j in range(n):
        target[place + j] = source[j]
