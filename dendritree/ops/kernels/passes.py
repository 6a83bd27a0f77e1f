"""What both passes share: the trees of a call, and the addresses of the tiles that they read and write."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..header import CHUNK, PIECEWISE, PLACE
from .blocks import from_tiles, to_tiles
from .images import copy_outputs, copy_planes
from .memory import INT32, at, cast, chunk_at, place_at, sheet_at
from .parts import part
from .tiles import bit_stride, item, lanes, stride

PLACE_BYTES, CHUNK_BYTES = PLACE.itemsize, CHUNK.itemsize


class Trees(NamedTuple):
    """The trees of a call: their tables, weights and settings."""

    places: Any
    rows: Any
    row_bytes: Any
    weight: Any
    kind: Any
    slope: Any
    root_linear: Any
    scale: Any


class Tiles(NamedTuple):
    """Addresses of the tiles of one run of samples."""

    inputs: Any
    values: Any
    """By slot: the values of nodes; in the backward pass, their H."""
    outputs: Any
    """By neuron: the outputs; in the backward pass, their gradients."""
    four: Any
    """Scratch space for four nodes that are computed together."""
    trace: Any
    """By place: what the forward pass saves for the backward pass."""


@part
def trees_of(call, sizes, real):
    """The trees of a call."""
    places, rows, weight = call.tables + sizes.places_at, at(call.rows, INT32), at(call.weight, real)
    slope, scale = cast(call.slope, real), cast(call.scale, real)
    return Trees(places, rows, call.row_bytes, weight, call.kind, slope, call.root_linear != 0, scale)


@part
def chunk_of(call, sizes, c):
    """The first place of a chunk, the first place after it, its first neuron and its number of neurons."""
    chunk = call.tables + sizes.chunks_at + c * CHUNK_BYTES
    here, beyond = chunk_at(chunk), chunk_at(chunk + CHUNK_BYTES)
    return here.place, beyond.place, here.neuron, beyond.neuron - here.neuron


@part
def place_of(trees, p):
    """A row of the table of places."""
    return place_at(trees.places + p * PLACE_BYTES)


@part
def upper_end(tiles, root, slot, zero):
    """The address of a node's value for whatever reads it: among the outputs for a root, else in a slot."""
    return tiles.outputs + root * stride(zero) if root >= 0 else tiles.values + slot * stride(zero)


@part
def trace_stride(kind, zero):
    """Bytes per tile of the trace of a node."""
    return bit_stride(zero) if kind == PIECEWISE else stride(zero)


# ------------------------------------------------------------------------------------------------ inputs and outputs


@part
def beginning_of(call, block, zero):
    """The first sample or image of a block, and how many it has."""
    each = sheet_at(call.sheet).images if call.sheet else lanes(zero)
    return block * each, min(each, call.batch - block * each)


@part
def make_inputs(call, sizes, block, inputs, zero):
    """Lay out the inputs of a block."""
    first, n = beginning_of(call, block, zero)
    x = call.x + first * call.x_sample
    if call.sheet:
        copy_planes(sheet_at(call.sheet), x, n, inputs, True, zero)
    else:
        to_tiles(x, call.x_sample, call.x_feature, n, sizes.features, inputs, zero)


@part
def write_outputs(call, sizes, block, tile, neuron, count, outputs, zero):
    """Write the outputs of `count` neurons for a tile of a block."""
    first, n = beginning_of(call, block, zero)
    y = call.y + first * call.y_sample + neuron * call.y_feature
    if call.sheet:
        copy_outputs(sheet_at(call.sheet), y, sizes.neurons, count, tile * lanes(zero), n, outputs, False, zero)
    else:
        from_tiles(outputs, count, y, call.y_sample, n, zero)


@part
def read_gradients(call, sizes, block, tile, neuron, count, outputs, zero):
    """Read the gradients of the outputs of `count` neurons for a tile of a block."""
    first, n = beginning_of(call, block, zero)
    gy = call.y + first * call.y_sample + neuron * call.y_feature
    if call.sheet:
        copy_outputs(sheet_at(call.sheet), gy, sizes.neurons, count, tile * lanes(zero), n, outputs, True, zero)
    else:
        to_tiles(gy, call.y_sample, call.y_feature, n, count, outputs, zero)


@part
def write_gradients(call, sizes, block, group, gradients, zero):
    """Write the contribution of a group of chunks to the gradients of the inputs of a block."""
    first, n = beginning_of(call, block, zero)
    gx = call.gx + group * call.gx_numbers * item(zero)
    if call.sheet:
        copy_planes(sheet_at(call.sheet), gx + first * call.x_sample, n, gradients, False, zero)
    else:
        each = sizes.features * item(zero)
        from_tiles(gradients, sizes.features, gx + first * each, each, n, zero)
