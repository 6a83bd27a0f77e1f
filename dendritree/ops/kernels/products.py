"""Sums of log sigmoid(gain x - shift) over inputs, and their gradients.

log sigmoid(u) = min(u, 0) - log(1 + exp(-|u|)). The factors 1 + exp(-|u|) lie between 1 and 2, so a hundred of them
are multiplied before one logarithm is taken. The product is stored as q = product - 1, which loses no precision for
factors near 1.
"""

from __future__ import annotations

import math

from .exponential import exp
from .memory import at, fill
from .parts import part

LANES = 128
"""Inputs processed side by side, each position with its own product."""

PANEL = 7 * LANES
"""Inputs between two logarithms: 7 factors per position, 112 once 16 positions are joined; 128 would overflow
float32."""

JOINED = LANES // 16

TILE = 64
"""Inputs, and samples, of a tile of the backward pass: two tiles of float32 fill the L1 cache."""


@part
def multiply(x, gain, shift, scratch, n, zero, one):
    """Multiply the next factor into `n` positions, q = (1 + q) (1 + e) - 1, and add to the sum of min(u, 0)."""
    for j in range(n):
        u = x[j] * gain[j] - shift[j]
        e = exp(-abs(u))
        q = scratch[j]
        scratch[j] = q + e * (one + q)
        scratch[LANES + j] += u if u < zero else zero


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
def pull_synapses(x, of_x, pair, about, held, n, one):
    """The `pull` function of `add_gradients`: one sample's gradients of gain, and of shift negated."""
    (gy,) = about
    zero, g = one - one, gy[pair]
    for j in range(n):
        gain = held[j]
        u = x[j] * gain - held[TILE + j]
        e = exp(-abs(u))
        upper = one / (one + e)
        slope = g * (e * upper if u > zero else upper)  # sigmoid(-u); NaN comes from e
        of_x[j] += slope * gain
        held[2 * TILE + j] += slope * x[j]
        held[3 * TILE + j] -= slope


def log_products_backward(
    x, gain, shift, gy, of_x, of_gain, of_shift, scratch, inputs, dendrites, samples, first, last, item, one
):
    """Add to the gradients of inputs `first ... last - 1`; `scratch` holds 4 TILE numbers."""
    addresses, sizes = (x, gain, shift, of_x, of_gain, of_shift), (inputs, dendrites, samples)
    add_gradients(pull_synapses, (at(gy, one),), addresses, sizes, first, last, scratch, item, one)


@part
def add_gradients(pull, about, addresses, sizes, first, last, scratch, item, one):
    """Add to the gradients of x and of two weights per dendrite and input, for inputs `first ... last - 1`.

    This works tile by tile, of inputs and of samples: the four quarters of `scratch` hold both weights of a dendrite,
    then the sums of their gradients, and `pull` adds one sample's contribution to these and to the gradients of x.
    Tiles of samples are summed separately, so that rounding errors do not grow with the batch.
    """
    x, weight, other, of_x, of_weight, of_other = addresses
    inputs, dendrites, samples = sizes
    held, zero = at(scratch, one), one - one
    for i in range(first, last, TILE):
        n = min(TILE, last - i)
        for tile in range(0, samples, TILE):
            for d in range(dendrites):
                here = (d * inputs + i) * item
                one_weight, other_weight = at(weight + here, one), at(other + here, one)
                for j in range(n):
                    held[j] = one_weight[j]
                for j in range(n):
                    held[TILE + j] = other_weight[j]
                for j in range(2 * TILE, 4 * TILE):
                    held[j] = zero
                for s in range(tile, min(tile + TILE, samples)):
                    row = (s * inputs + i) * item
                    pull(at(x + row, one), at(of_x + row, one), s * dendrites + d, about, held, n, one)
                to_weight, to_other = at(of_weight + here, one), at(of_other + here, one)
                for j in range(n):
                    to_weight[j] += held[2 * TILE + j]
                for j in range(n):
                    to_other[j] += held[3 * TILE + j]
