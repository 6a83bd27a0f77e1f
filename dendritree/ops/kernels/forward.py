"""The forward pass: a node is the activation of a weighted sum of tiles.

    z = bias + sum over its edges of weight * row        value = act(z)

A row is an input or the value of a dendrite. One bit per node and sample is saved for the backward pass, the sign of z:
LeakyReLU, ReLU and the identity are act(z) = m z, and the sign determines m, 1 or the slope. Smooth activations save
their values instead.
"""

from __future__ import annotations

import numpy as np

from ..header import PIECEWISE, TANH
from .exponential import sigmoid, tanh
from .images import position_keys
from .masks import FIRST, SECOND, Mask, sample_keys, synapse_key
from .memory import UINT32, at, call_at, sheet_at, sizes_at
from .parts import loop, part
from .passes import (
    Tiles,
    beginning_of,
    chunk_of,
    make_inputs,
    place_of,
    trace_stride,
    trees_of,
    upper_end,
    write_outputs,
)
from .sharing import TILES, WORKERS, count_up, share_of, take
from .tiles import (
    bit_stride,
    choose,
    dropped,
    fma,
    lanes,
    load,
    mark_not_positive,
    mul,
    number,
    pair_bits,
    shorter,
    spread,
    store,
    stride,
)


@part
def forward(header, zero):
    """Run all samples through all trees; threads that enter together share the work.

    A job is a block, the tiles whose inputs are laid out together, and a share of the chunks. Each thread lays out the
    inputs for itself: reading what another core has just written takes longer. Those made for the first share are saved
    for the backward pass.
    """
    call = call_at(header)
    sizes = sizes_at(call.sizes)
    trees = trees_of(call, sizes, number(zero))
    width, samples = stride(zero), lanes(zero)
    values = call.work + count_up(header + WORKERS) * call.work_bytes
    outputs = values + sizes.slots * width
    four = outputs + sizes.widest * width
    keys = four + 4 * width
    own_inputs = keys + 4 * samples
    inputs, block_at_hand = own_inputs, -1
    low, high = UINT32, UINT32
    if call.limit:
        low, high = at(call.seed, UINT32)[0], at(call.seed, UINT32)[1]
    mask = Mask(np.uint32(call.limit << 16), low, high, keys)

    jobs = call.blocks * call.groups
    job = take(header, TILES)
    while job < jobs:
        block, group = job // call.groups, job % call.groups
        if block != block_at_hand:
            inputs = call.inputs + block * call.input_bytes if call.inputs and group == 0 else own_inputs
            make_inputs(call, sizes, block, inputs, zero)
            block_at_hand = block
        first_chunk, last_chunk = share_of(sizes.chunks, group, call.groups)
        for i in range(call.block_tiles):
            t = block * call.block_tiles + i
            if call.limit:
                make_keys(call, mask, block, i, zero)
            trace = call.trace + t * sizes.nodes * trace_stride(call.kind, zero)
            silent = call.silent + t * sizes.edges * bit_stride(zero)
            for c in range(first_chunk, last_chunk):
                first, last, neuron, count = chunk_of(call, sizes, c)
                tiles = Tiles(inputs + i * width, values, outputs - neuron * width, four, trace)
                run_nodes(call.bias, trees, tiles, first, last, silent, mask, zero)
                write_outputs(call, sizes, block, i, neuron, count, outputs, zero)
        job = take(header, TILES)


@part
def make_keys(call, mask, block, tile, zero):
    """Write the keys of the samples, or positions, of a tile of a block."""
    first, _ = beginning_of(call, block, zero)
    if call.sheet:
        position_keys(mask, sheet_at(call.sheet), tile * lanes(zero), first, zero)
    else:
        sample_keys(mask, first, lanes(zero))


@loop
def run_nodes(bias_at, trees, tiles, first_place, last_place, silent, mask, zero):
    """Values of the nodes of a chunk for one tile of samples, children before parents."""
    p = first_place
    while p < last_place:
        place = place_of(trees, p)
        if place.is_quarter and not mask.limit:
            run_four(bias_at, trees, tiles, p, zero)
            p += 4
            continue
        b = bias_of(bias_at, place, zero)
        if mask.limit:
            z = dropped_sum(b, trees, place, tiles, silent, mask, zero)
        else:
            z = weighted_sum(b, trees, place, tiles, zero)
        pass_on(z, trees, tiles, p, 0, zero, zero)
        p += 1


@part
def run_four(bias_at, trees, tiles, p, zero):
    """Values of four nodes that read the same inputs: each part of a tile is loaded once for all four."""
    a, b, c, d = place_of(trees, p), place_of(trees, p + 1), place_of(trees, p + 2), place_of(trees, p + 3)
    weight, none = trees.weight, shorter(zero)
    for i in range(stride(zero) // stride(none)):
        z0, z1 = spread(bias_of(bias_at, a, zero), none), spread(bias_of(bias_at, b, zero), none)
        z2, z3 = spread(bias_of(bias_at, c, zero), none), spread(bias_of(bias_at, d, zero), none)
        inputs = tiles.inputs + i * stride(none)
        for e in range(a.fan_in):
            row = load(inputs + trees.rows[a.first + e] * trees.row_bytes, none)
            z0, z1 = fma(weight[a.first + e], row, z0), fma(weight[b.first + e], row, z1)
            z2, z3 = fma(weight[c.first + e], row, z2), fma(weight[d.first + e], row, z3)
        store(tiles.four, z0)
        store(tiles.four + stride(none), z1)
        store(tiles.four + 2 * stride(none), z2)
        store(tiles.four + 3 * stride(none), z3)
        for k in range(4):  # not four calls, each of which would be compiled: an activation takes a second to compile
            pass_on(load(tiles.four + k * stride(none), none), trees, tiles, p + k, i, none, zero)


@part
def bias_of(bias_at, place, zero):
    """The bias of a node; 0 if there are no biases."""
    return at(bias_at, number(zero))[place.node] if bias_at else number(zero)


@loop
def pass_on(z, trees, tiles, p, i, none, zero):
    """Write value = act(z) where the parent reads it, for part `i` of a tile; `none` are zeros for a part."""
    place, kind = place_of(trees, p), trees.kind
    trace = tiles.trace + p * trace_stride(kind, zero) + i * trace_stride(kind, none)
    value = activate(z, place.root >= 0 and trees.root_linear, kind, trees.slope, trace, none)
    store(upper_end(tiles, place.root, place.slot, zero) + i * stride(none), value)


@loop
def row_at(row, trees, tiles, zero):
    """The address of the tile that an edge reads: an input, or the value of a dendrite."""
    return tiles.inputs + row * trees.row_bytes if row >= 0 else tiles.values + (-1 - row) * stride(zero)


@loop
def weighted_sum(bias, trees, place, tiles, zero):
    """bias + sum of weight * row."""
    z = spread(bias, zero)
    for e in range(place.first, place.first + place.fan_in):
        z = fma(trees.weight[e], load(row_at(trees.rows[e], trees, tiles, zero), zero), z)
    return z


@part
def dropped_sum(bias, trees, place, tiles, silent, mask, zero):
    """bias + sum of weight * row, where synapses are silenced for some samples and scaled up for the others."""
    z, first, rows = spread(bias, zero), place.first, trees.rows
    pair = pair_bits(UINT32, mask.keys, zero)
    for e in range(first, first + place.fan_in):
        row, bits = rows[e], silent + e * bit_stride(zero)
        value = load(row_at(row, trees, tiles, zero), zero)
        if row < 0:  # a dendrite is never silent: no hash is below 0
            z = fma(trees.weight[e], dropped(bits, pair, FIRST, UINT32, value), z)
            continue
        second = (e - first) % 2
        if second == 0 or rows[e - 1] < 0:
            pair = pair_bits(synapse_key(mask, e - second), mask.keys, zero)
        passed = dropped(bits, pair, SECOND if second else FIRST, mask.limit, value)
        z = fma(trees.weight[e] * trees.scale, passed, z)
    return z


@loop
def activate(z, linear, kind, slope, trace, zero):
    """act(z); what the backward pass needs is written to `trace`."""
    if kind == PIECEWISE:
        mark_not_positive(trace, z)
        if linear:
            return z
        return choose(trace, zero if slope == 0 else mul(slope, z), z)  # never 0 times infinity
    store(trace, z)
    if not linear:
        value = at(trace, number(zero))
        if kind == TANH:
            for j in range(lanes(zero)):
                value[j] = tanh(value[j])
        else:
            for j in range(lanes(zero)):
                value[j] = sigmoid(value[j])
    return load(trace, zero)
