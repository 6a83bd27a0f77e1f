"""The header, a struct whose address is a kernel's only argument. It is all that kernels and their callers share."""

import struct
from typing import NamedTuple

import numpy as np

__all__ = ["CHUNK", "HEADER", "KINDS", "PLACE", "SHEET", "SIZES", "Addresses", "Settings", "Sheet", "Sizes"]

PIECEWISE, TANH, SIGMOID = range(3)
KINDS = {"LeakyReLU": PIECEWISE, "ReLU": PIECEWISE, "Identity": PIECEWISE, "Tanh": TANH, "Sigmoid": SIGMOID}
"""How a node's activation is computed: as `m z` with m = 1 or the slope, or as one of the smooth functions."""

_COLUMNS = ("node", "first", "fan_in", "synapses", "slot", "parent_slot", "parent", "edge", "root", "is_quarter")
PLACE = np.dtype([(name, np.int32) for name in _COLUMNS])
"""A row of the table of places: the node at this place, its first edge, its number of children, how many of the first
children are synapses, its slot, its parent's slot and place, the edge to its parent, its neuron if it is a root (-1
where these do not apply), and whether it is one of four consecutive nodes that read the same inputs and no dendrite."""

CHUNK = np.dtype([("place", np.int32), ("neuron", np.int32)])
"""A row of the table of chunks: its first place and its first neuron. A final row holds the total counts."""


class Sizes(NamedTuple):
    """A forest as the kernels see it: its counts, and the byte offsets of its tables."""

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
    """The table with, for each edge, the input it reads, or -1 - slot of the dendrite it reads."""
    chunks_at: int


class Sheet(NamedTuple):
    """How the images of a block are laid out in planes: see `kernels/images.py`."""

    images: int
    """Images per block."""
    channels: int
    height: int
    width: int
    top: int
    left: int
    """Zeros above and left of an image."""
    row_step: int
    column_step: int
    """The strides; a channel has as many planes as their product."""
    rows: int
    columns: int
    """Rows from one image to the next, and numbers from one row to the next, in a plane."""
    plane: int
    """Numbers from one plane to the next."""
    out_rows: int
    out_columns: int


class Settings(NamedTuple):
    """The settings of a call that do not depend on its tensors."""

    batch: int
    """The number of samples, or of images."""
    blocks: int
    block_tiles: int
    """Tiles whose inputs are laid out together: one tile of samples, or all tiles of the images of a sheet."""
    input_bytes: int
    """Bytes of the inputs of a block."""
    row_bytes: int
    """Bytes from one input to the next, in the units of `rows`."""
    kind: int
    """One of `KINDS`."""
    root_linear: int
    slope: float
    limit: int
    """How many of 65536 synapses dropout silences."""
    scale: float
    """The factor by which dropout multiplies the other synapses; 1 without dropout."""
    work_bytes: int
    """Working memory of each thread."""
    groups: int
    """Shares of the chunks that threads take. In the backward pass each share has its own gradients of the inputs."""
    parts: int = 1
    """Shares of the tiles, each with its own sums of gradients."""


class Addresses(NamedTuple):
    """Addresses of the tensors of a call, 0 for those that are absent. Strides are in bytes."""

    tables: int
    sizes: int
    rows: int
    sheet: int
    """How images are laid out in planes; 0 if inputs are rows of features."""
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
    """What the forward pass saves per node: signs of sums, or values of a smooth activation."""
    silent: int
    """The bits of silenced synapses."""
    work: int
    gx: int
    gx_numbers: int
    """Gradients of inputs, and how many numbers each group has."""
    gw: int
    gb: int
    """Gradients of weights and biases, one copy per part."""
    products: int
    """P of every place, the product of weights from there to the root; then Q of every place (see `backward`)."""


JOBS = ("paths", "tiles", "chunks", "inputs")
COUNTERS = [f"{jobs}_{what}" for jobs in JOBS for what in ("taken", "done")] + ["workers", "failed"]
"""Counters that the kernels increment from 0: jobs of each kind that were taken and that are done, threads that have
started and, in the backward pass, chunks with a sum or a weight that is not finite, where the path form is invalid."""

_FIELDS = {**dict.fromkeys(COUNTERS, int), **Settings.__annotations__, **Addresses.__annotations__}
HEADER = np.dtype([(name, {int: "i8", float: "f8"}[kind]) for name, kind in _FIELDS.items()])
"""The header of one call: counters, settings and addresses, 64 bits each."""

SIZES, SHEET = (np.dtype([(name, "i8") for name in fields]) for fields in (Sizes._fields, Sheet._fields))

_pack_settings = struct.Struct("".join({int: "q", float: "d"}[kind] for kind in Settings.__annotations__.values())).pack
pack_addresses = struct.Struct(f"{len(Addresses._fields)}q").pack


def pack_settings(settings: Settings) -> bytes:
    """Pack the beginning of a header: counters at 0, and settings. The addresses follow."""
    return bytes(8 * len(COUNTERS)) + _pack_settings(*settings)


def offset_of(field: str) -> int:
    """The byte offset of a field of the header.

    >>> offset_of("paths_taken"), offset_of("workers")
    (0, 64)
    """
    return 8 * list(_FIELDS).index(field)
