"""What both passes share: the trees of a call, and where the tiles lie that they read and write."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..header import CHUNK, PIECEWISE, PLACE
from .core import INT32, at, cast, chunk_at, place_at
from .files import part
from .tiles import bit_stride, stride

PLACE_BYTES, CHUNK_BYTES = PLACE.itemsize, CHUNK.itemsize


class Trees(NamedTuple):
    """The trees of a call, and what their nodes compute with."""

    places: Any
    rows: Any
    weight: Any
    kind: Any
    slope: Any
    root_linear: Any
    scale: Any


class Tiles(NamedTuple):
    """Where the tiles of one run of samples lie."""

    inputs: Any
    values: Any
    """By slot: the values of nodes; in the backward pass their H."""
    outputs: Any
    """By neuron: outputs; in the backward pass their gradients."""
    trace: Any
    """By place: what the forward pass keeps for the backward pass."""


@part
def trees_of(call, sizes, real):
    """The trees of a call."""
    places, rows = call.tables + sizes.places_at, at(call.tables + sizes.rows_at, INT32)
    slope, scale = cast(call.slope, real), cast(call.scale, real)
    return Trees(places, rows, at(call.weight, real), call.kind, slope, call.root_linear != 0, scale)


@part
def chunk_of(call, sizes, c):
    """The first place of a chunk and the first beyond it, its first neuron and how many it has."""
    chunk = call.tables + sizes.chunks_at + c * CHUNK_BYTES
    here, beyond = chunk_at(chunk), chunk_at(chunk + CHUNK_BYTES)
    return here.place, beyond.place, here.neuron, beyond.neuron - here.neuron


@part
def place_of(trees, p):
    """A line of the table of places."""
    return place_at(trees.places + p * PLACE_BYTES)


@part
def upper_end(tiles, root, slot, zero):
    """Where a node meets what is above it: a root the outputs, another node a slot."""
    return tiles.outputs + root * stride(zero) if root >= 0 else tiles.values + slot * stride(zero)


@part
def trace_stride(kind, zero):
    """Bytes that the trace of a node has for a tile."""
    return bit_stride(zero) if kind == PIECEWISE else stride(zero)
