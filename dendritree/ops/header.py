"""What a kernel is given: one address of named fields. Kernels and their callers share these, and nothing else."""

import struct
from typing import NamedTuple

import numpy as np

__all__ = ["COLUMNS", "KINDS", "Call", "Sizes", "pack", "record_type"]

KINDS = {"LeakyReLU": 0, "ReLU": 0, "Identity": 0, "Tanh": 1, "Sigmoid": 2}
"""How a node's activation is computed: `m z` with m = 1 or the slope, or one of the smooth ones."""

NODE, FIRST, FAN_IN, SYNAPSES, SLOT, PARENT_SLOT, PARENT, EDGE, ROOT = range(9)
COLUMNS = 9
"""Columns of the table of places: the node there, its first edge, its children, how many of the first are synapses, its
slot, its parent's slot and place, the edge to its parent, its neuron if it is a root. What does not apply is -1."""


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
    """For each chunk, and after the last, its first place and its first neuron."""


class Call(NamedTuple):
    """One call of a kernel. Addresses are 0 for what is not there; strides are in bytes."""

    taken0: int = 0
    done0: int = 0
    taken1: int = 0
    done1: int = 0
    taken2: int = 0
    done2: int = 0
    taken3: int = 0
    done3: int = 0
    workers: int = 0
    """Threads that have begun. The fields so far are counters, which the kernels count up."""
    failed: int = 0
    """Set by the backward pass if a sum or a weight is not finite: the path form says nothing then."""
    tables: int = 0
    sizes: int = 0
    batch: int = 0
    kind: int = 0
    root_linear: int = 0
    slope: float = 0.0
    limit: int = 0
    """Of 65536 synapses dropout silences so many."""
    scale: float = 1.0
    seed: int = 0
    x: int = 0
    x_sample: int = 0
    x_feature: int = 0
    weight: int = 0
    bias: int = 0
    y: int = 0
    """Outputs, or their gradients."""
    y_sample: int = 0
    y_feature: int = 0
    inputs: int = 0
    """Tiles of the inputs, if they are kept."""
    trace: int = 0
    """What the forward pass keeps of every node: signs of sums, or values of a smooth activation."""
    silent: int = 0
    """The bits of silenced synapses."""
    work: int = 0
    work_bytes: int = 0
    """Working memory of each thread."""
    splits: int = 1
    """Shares of a tile's inputs, for threads to transpose."""
    groups: int = 1
    """Shares of the chunks, for threads to take."""
    parts: int = 1
    """Shares of the tiles, each with sums of gradients of its own."""
    gx: int = 0
    """Gradients of inputs, one share for each group."""
    gw: int = 0
    gb: int = 0
    """Gradients of weights and biases, one share for each part."""
    products: int = 0
    """For each place the product of weights from there to the root, then as many sums."""


_FORMAT = struct.Struct("".join({int: "q", float: "d"}[kind] for kind in Call.__annotations__.values()))
pack = _FORMAT.pack


def record_type(kind: type[Call] | type[Sizes]) -> np.dtype[np.void]:
    """The fields as kernels read them: 64 bits each.

    >>> record_type(Sizes).names[:3]
    ('features', 'neurons', 'nodes')
    """
    return np.dtype([(name, {int: "i8", float: "f8"}[of]) for name, of in kind.__annotations__.items()])
