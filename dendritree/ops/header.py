"""What a kernel is given: one address of named fields. Kernels and their callers share these, and nothing else."""

import struct
from typing import NamedTuple

import numpy as np

__all__ = ["CHUNK", "HEADER", "KINDS", "PLACE", "SHEET", "SIZES", "Addresses", "Settings", "Sheet", "Sizes"]

PIECEWISE, TANH, SIGMOID = range(3)
KINDS = {"LeakyReLU": PIECEWISE, "ReLU": PIECEWISE, "Identity": PIECEWISE, "Tanh": TANH, "Sigmoid": SIGMOID}
"""How a node's activation is computed: `m z` with m = 1 or the slope, or one of the smooth ones."""

_COLUMNS = ("node", "first", "fan_in", "synapses", "slot", "parent_slot", "parent", "edge", "root", "is_quarter")
PLACE = np.dtype([(name, np.int32) for name in _COLUMNS])
"""A line of the table of places: the node there, its first edge, its children, how many of the first are synapses, its
slot, its parent's slot and place, the edge to its parent, its neuron if it is a root, -1 where these do not apply;
whether it is one of four in a row that read the same inputs and nothing else."""

CHUNK = np.dtype([("place", np.int32), ("neuron", np.int32)])
"""A line of the table of chunks: its first place, its first neuron. One more line follows, with how many there are."""


class Sizes(NamedTuple):
    """A forest as the kernels see it: how much there is of everything, and where its tables begin, in bytes."""

    features: int
    neurons: int
    nodes: int
    edges: int
    chunks: int
    slots: int
    """Rows of working memory for the values of nodes."""
    widest: int
    """The largest number of neurons in a chunk."""
    places_at: int
    rows_at: int
    """For each edge the input it reads, or -1 - the slot of the dendrite it reads."""
    chunks_at: int


class Sheet(NamedTuple):
    """How the images of a block lie in planes: see `kernels/images.py`."""

    images: int
    """Of a block."""
    channels: int
    height: int
    width: int
    top: int
    left: int
    """Zeros above and left of an image."""
    row_step: int
    column_step: int
    """The strides: as many planes for a channel as their product."""
    rows: int
    columns: int
    """From an image to the next and from a row to the next in a plane."""
    plane: int
    """Numbers from a plane to the next."""
    out_rows: int
    out_columns: int


class Settings(NamedTuple):
    """What a call does, whatever its tensors are."""

    batch: int
    """Samples; or images."""
    blocks: int
    block_tiles: int
    """Tiles whose inputs are made together: one of samples, or all that the images of a sheet have."""
    input_bytes: int
    """The inputs of a block."""
    row_bytes: int
    """From an input to the next, as `rows` counts them."""
    kind: int
    """One of `KINDS`."""
    root_linear: int
    slope: float
    limit: int
    """Of 65536 synapses dropout silences so many."""
    scale: float
    """What dropout multiplies the other synapses with; 1 without dropout."""
    work_bytes: int
    """Working memory of each thread."""
    groups: int
    """Shares of the chunks, for threads to take. In the backward pass each has gradients of the inputs of its own."""
    parts: int = 1
    """Shares of the tiles, each with sums of gradients of its own."""


class Addresses(NamedTuple):
    """Where the tensors of a call lie; 0 for what is not there. Strides are in bytes."""

    tables: int
    sizes: int
    rows: int
    sheet: int
    """How images lie in planes; 0 where inputs are rows of features."""
    seed: int
    x: int
    x_sample: int
    x_feature: int
    weight: int
    bias: int
    y: int
    """Outputs, or their gradients."""
    y_sample: int
    y_feature: int
    inputs: int
    """Tiles of the inputs, if they are kept."""
    trace: int
    """What the forward pass keeps of every node: signs of sums, or values of a smooth activation."""
    silent: int
    """The bits of silenced synapses."""
    work: int
    gx: int
    gx_numbers: int
    """Gradients of inputs, so many numbers for each group."""
    gw: int
    gb: int
    """Gradients of weights and biases, one share for each part."""
    products: int
    """For each place P, the product of weights from there to the root; then for each place Q (see `backward`)."""


JOBS = ("paths", "tiles", "chunks", "inputs")
COUNTERS = [f"{jobs}_{what}" for jobs in JOBS for what in ("taken", "done")] + ["workers", "failed"]
"""Counters that the kernels count up, from 0: jobs of each sort that were taken and that are done, threads that have
begun, and, in the backward pass, chunks with a sum or a weight that is not finite: the path form says nothing then."""

_FIELDS = {**dict.fromkeys(COUNTERS, int), **Settings.__annotations__, **Addresses.__annotations__}
HEADER = np.dtype([(name, {int: "i8", float: "f8"}[kind]) for name, kind in _FIELDS.items()])
"""One call: counters, settings, addresses; 64 bits each."""

SIZES, SHEET = (np.dtype([(name, "i8") for name in fields]) for fields in (Sizes._fields, Sheet._fields))

_pack_settings = struct.Struct("".join({int: "q", float: "d"}[kind] for kind in Settings.__annotations__.values())).pack
pack_addresses = struct.Struct(f"{len(Addresses._fields)}q").pack


def pack_settings(settings: Settings) -> bytes:
    """The beginning of a header: counters at 0, and settings. The addresses follow."""
    return bytes(8 * len(COUNTERS)) + _pack_settings(*settings)


def offset_of(field: str) -> int:
    """Where a field of a header begins, in bytes.

    >>> offset_of("paths_taken"), offset_of("workers")
    (0, 64)
    """
    return 8 * list(_FIELDS).index(field)
