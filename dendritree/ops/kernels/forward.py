"""The forward pass: a node is the activation of a weighted sum of tiles.

Of every node and sample one bit is kept for the way back, the sign of the sum: the activations LeakyReLU, ReLU and none
are act(z) = m z, and the sign tells m, 1 or the slope. Smooth activations keep their values instead.
"""

from __future__ import annotations

import math

import numpy as np

from ..header import COLUMNS, FAN_IN, FIRST, NODE, ROOT, SLOT
from .blocks import from_tiles, to_tiles
from .core import INT32, WORKERS, at, call_at, cast, count_up, part, sizes_at, take
from .masks import LOWER, UPPER, sample_keys, synapse_key
from .tiles import (
    choose,
    fma,
    lanes,
    load,
    mark_below,
    mark_not_positive,
    mul,
    number,
    pair_bits,
    spread,
    store,
    stride,
)

TANH = 1


@part
def row_of(row, inputs, values, zero):
    """Where the tile lies that an edge reads: an input, or the value of a dendrite."""
    return inputs + row * stride(zero) if row >= 0 else values + (-1 - row) * stride(zero)


@part
def weighted_sum(bias, first, fan_in, rows, weight, inputs, values, zero):
    """bias + sum of weight * row."""
    z = spread(bias, zero)
    for e in range(first, first + fan_in):
        z = fma(weight[e], load(row_of(rows[e], inputs, values, zero), zero), z)
    return z


@part
def dropped_sum(bias, first, fan_in, rows, weight, inputs, values, silent, keys, low, high, limit, scale, zero):
    """bias + sum of weight * row, where synapses are silenced for some samples and scaled up for the others."""
    z = spread(bias, zero)
    pair = pair_bits(np.uint32(0), keys, zero)
    for e in range(first, first + fan_in):
        row, bits = rows[e], silent + e * (lanes(zero) // 8)
        value = load(row_of(row, inputs, values, zero), zero)
        if row < 0:  # a dendrite: never silent
            mark_below(bits, pair, LOWER, np.uint32(0))
            z = fma(weight[e], value, z)
            continue
        second = (e - first) % 2
        if second == 0 or rows[e - 1] < 0:
            pair = pair_bits(synapse_key(low, high, e - second), keys, zero)
        mark_below(bits, pair, LOWER if second else UPPER, limit)
        z = fma(weight[e] * scale, choose(bits, zero, value), z)
    return z


@part
def activate(z, linear, kind, slope, trace, zero):
    """The activation of a sum; what the way back needs is written to `trace`."""
    if kind == 0:
        mark_not_positive(trace, z)
        if linear:
            return z
        return choose(trace, zero if slope == 0 else mul(slope, z), z)  # never 0 times infinity
    store(trace, z)
    if not linear:
        value, one = at(trace, number(zero)), cast(1, number(zero))
        for j in range(lanes(zero)):
            if kind == TANH:
                value[j] = math.tanh(value[j])
            else:
                value[j] = one / (one + math.exp(-value[j]))
    return load(trace, zero)


@part
def trace_stride(kind, zero):
    """Bytes that the trace of a node has for a tile."""
    return lanes(zero) // 8 if kind == 0 else stride(zero)


@part
def run_nodes(
    call, places, rows, first_place, last_place, first_neuron, inputs, values, outputs, trace, silent, keys, zero
):
    """Values of the nodes of a chunk for one tile of samples; those of roots go to `outputs`."""
    real = number(zero)
    weight, bias = at(call.weight, real), at(call.bias, real)
    slope, scale, limit = cast(call.slope, real), cast(call.scale, real), np.uint32(call.limit)
    low, high = np.uint32(0), np.uint32(0)
    if limit:
        low, high = at(call.seed, np.uint32(0))[0], at(call.seed, np.uint32(0))[1]
    kind, root_linear, has_bias = call.kind, call.root_linear != 0, call.bias != 0
    step = trace_stride(kind, zero)
    for p in range(first_place, last_place):
        place = COLUMNS * p
        node, first, fan_in, root = (
            places[place + NODE],
            places[place + FIRST],
            places[place + FAN_IN],
            places[place + ROOT],
        )
        c = bias[node] if has_bias else real
        if limit:
            z = dropped_sum(c, first, fan_in, rows, weight, inputs, values, silent, keys, low, high, limit, scale, zero)
        else:
            z = weighted_sum(c, first, fan_in, rows, weight, inputs, values, zero)
        value = activate(z, root >= 0 and root_linear, kind, slope, trace + p * step, zero)
        store(
            outputs + (root - first_neuron) * stride(zero)
            if root >= 0
            else values + places[place + SLOT] * stride(zero),
            value,
        )


@part
def forward(header, zero):
    """Run all samples through all trees; threads that enter together share the work.

    A job is a tile of samples and a share of the chunks. A thread makes the tiles of the inputs for itself: to read
    what another core has just written takes longer. Those of whoever takes a tile first are kept for the way back.
    """
    call = call_at(header)
    sizes = sizes_at(call.sizes)
    width, samples = stride(zero), lanes(zero)
    tiles = -(-call.batch // samples)
    places, rows = at(call.tables + sizes.places_at, INT32), at(call.tables + sizes.rows_at, INT32)
    chunks = at(call.tables + sizes.chunks_at, INT32)
    step = trace_stride(call.kind, zero)
    values = call.work + count_up(header + WORKERS) * call.work_bytes
    outputs = values + sizes.slots * width
    keys = outputs + sizes.widest * width
    own_inputs = keys + 4 * samples
    inputs, tile_at_hand = own_inputs, -1

    jobs = tiles * call.groups
    job = take(header, 0)
    while job < jobs:
        t, group = job // call.groups, job % call.groups
        n, first_sample = min(samples, call.batch - t * samples), t * samples
        if t != tile_at_hand:
            inputs = call.inputs + t * sizes.features * width if call.inputs and group == 0 else own_inputs
            x = call.x + first_sample * call.x_sample
            to_tiles(x, call.x_sample, call.x_feature, n, sizes.features, inputs, zero)
            if call.limit:
                seed = at(call.seed, np.uint32(0))
                sample_keys(seed[0], seed[1], first_sample, samples, at(keys, np.uint32(0)))
            tile_at_hand = t
        for c in range(group * sizes.chunks // call.groups, (group + 1) * sizes.chunks // call.groups):
            neuron, count = chunks[2 * c + 1], chunks[2 * c + 3] - chunks[2 * c + 1]
            run_nodes(
                call,
                places,
                rows,
                chunks[2 * c],
                chunks[2 * c + 2],
                neuron,
                inputs,
                values,
                outputs,
                call.trace + t * sizes.nodes * step,
                call.silent + t * sizes.edges * (samples // 8),
                keys,
                zero,
            )
            y = call.y + first_sample * call.y_sample + neuron * call.y_feature
            from_tiles(outputs, count, y, call.y_sample, n, zero)
        job = take(header, 0)
