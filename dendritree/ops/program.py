"""A forest laid out for the fused kernels.

Nodes get *places* in depth-first order, so that a dendrite is computed right after its children, while their rows are
in the nearest cache. Neurons with equal trees go through their places together, a *bundle* at a time, so that inputs
they share are read once for all of them. *Chunks* of bundles are what threads take; they depend on the forest alone.

The backward pass needs the gradient of a node only from its parent's turn to its own. So gradients live in few
*homes*: the slots of a stack, one stack per chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..tree import Forest, IntArray

__all__ = ["Program", "make_program"]

BUNDLE = 8
"""Equal trees that are walked together: 256 neurons on 1024 shared inputs run 1.7 times faster than one by one."""

MAX_CHUNKS = 64
"""Pieces of a layer for threads to take: fixed, so that results do not depend on the number of threads."""

NODE, FIRST, FAN_IN, KIND, ROOT, COLUMNS = range(6)
"""Columns of the table of nodes: the node, its first edge, its children, their kind, its neuron or -1."""

SYNAPSES, DENDRITES, MIXED, LEAVES = range(4)
"""Kinds of children. Rows of synapses are inputs and rows of dendrites places; mixed, a dendrite is -1 - place. LEAVES
are leaf dendrites whose weighted sums a matmul has done."""


@dataclass(frozen=True)
class Program:
    """All tables in one tensor, so that a compiled graph carries one constant."""

    tables: Tensor
    """32-bit integers: the tables one after the other."""
    sizes: list[int]
    """Nodes; neurons; rows of gradients without and with those of the inputs (nodes with synapses then keep theirs);
    where the tables of nodes, rows, homes, kept homes, readers, reader edges and reader places begin, in bytes; and
    the place where each chunk begins, and the end. A plain list: a compiled graph carries it as such."""


def make_program(forest: Forest, *, matmul_leaves: bool = False) -> Program:
    """Lay out a forest.

    With `matmul_leaves` the kernels are not to visit the leaf level, which must be shared by all neurons and equally
    wide: its places come last, dendrite `d` of neuron `i` at `d * neurons + i` of them, as a batched matmul writes it.

    >>> make_program(Forest.grow(2, fan_in=8, neurons=4)).sizes[11:]
    [0, 14, 28]
    """
    place, bundle = _places_above_leaves(forest) if matmul_leaves else _places(forest)
    node = np.empty_like(place)
    node[place] = np.arange(forest.nodes, dtype=np.int32)
    inner = forest.source >= forest.in_features
    dendrites = np.add.reduceat(inner.astype(np.int32), forest.offsets[:-1])
    kind = np.where(dendrites == 0, SYNAPSES, np.where(dendrites == forest.fan_ins, DENDRITES, MIXED))
    if matmul_leaves:
        kind[forest.levels[1]] = LEAVES
    kind = kind[node]

    neuron_of_place = np.full(forest.nodes, -1, dtype=np.int32)
    neuron_of_place[place[forest.roots]] = np.arange(forest.neurons)
    nodes = np.stack([node, forest.offsets[node], forest.fan_ins[node], kind, neuron_of_place], axis=1)

    child = place[np.where(inner, forest.source - forest.in_features, 0)]
    in_mixed_node = kind[place][forest.node_of_edge] == MIXED
    rows = np.where(inner, np.where(in_mixed_node, -1 - child, child), forest.source)

    chunks = _chunks(place[forest.roots], bundle)
    mate = forest.neuron_of_node[node] % bundle
    homes, home_count = _homes(chunks, _slots(forest, np.ones(forest.nodes, dtype=bool))[node] * bundle + mate)
    keeps = (kind == SYNAPSES) | (kind == MIXED)
    stacked = np.empty(forest.nodes, dtype=bool)
    stacked[node] = ~keeps
    slots = np.where(keeps, -1, _slots(forest, stacked)[node] * bundle + mate)
    kept_homes, stack_count = _homes(chunks, slots)
    kept_homes[keeps] = stack_count + np.arange(np.count_nonzero(keeps))

    inputs = forest.synapse_inputs
    readers = np.concatenate([[0], np.cumsum(np.bincount(inputs, minlength=forest.in_features))])
    reader_edges = forest.synapse_edges[np.argsort(inputs, kind="stable")]
    reader_places = place[forest.node_of_edge[reader_edges]]

    tables = [nodes.ravel(), rows, homes, kept_homes, readers, reader_edges, reader_places]
    return Program(
        tables=torch.as_tensor(np.concatenate(tables, dtype=np.int32, casting="same_kind"), device="cpu"),
        sizes=[
            forest.nodes,
            forest.neurons,
            home_count,
            stack_count + int(np.count_nonzero(keeps)),
            *(4 * np.cumsum([0, *map(len, tables[:-1])])).tolist(),
            *chunks.tolist(),
        ],
    )


def _places(forest: Forest) -> tuple[IntArray, int]:
    """The place of each node, and how many neurons walk together."""
    place = _depth_first(forest)
    ends = place[forest.roots].astype(np.int64) + 1
    size = int(ends[0])
    bundle = min(BUNDLE, -(-forest.neurons // 2))  # at least two bundles, for two threads
    if bundle == 1 or not np.array_equal(ends, size * np.arange(1, forest.neurons + 1)):
        return place, 1
    neuron, step = np.divmod(place, size)
    order = np.lexsort((neuron, step, neuron // bundle))
    place[order] = np.arange(forest.nodes, dtype=np.int32)
    return place, bundle


def _places_above_leaves(forest: Forest) -> tuple[IntArray, int]:
    """Places of the nodes above the leaf level, and then of the leaf dendrites, dendrite by dendrite."""
    leaves, synapses = forest.levels[0].stop, forest.offsets[forest.levels[0].stop]
    above = Forest(
        leaves, forest.source[synapses:] - forest.in_features, forest.offsets[leaves:] - synapses, forest.roots - leaves
    )
    place, bundle = _places(above)
    neuron, dendrite = np.divmod(np.arange(leaves, dtype=np.int32), leaves // forest.neurons)
    return np.concatenate([above.nodes + dendrite * np.int32(forest.neurons) + neuron, place]), bundle


def _depth_first(forest: Forest) -> IntArray:
    """Number the nodes of tree after tree, children before parents, each branch in one run."""
    size = np.ones(forest.nodes, dtype=np.int64)  # of the subtree
    for level in forest.levels:
        _, below, first = _children(forest, level, size)
        size[level] += np.add.reduceat(below, first)
    start = np.zeros(forest.nodes, dtype=np.int64)
    start[forest.roots] = np.cumsum(size[forest.roots]) - size[forest.roots]
    for level in reversed(forest.levels):
        child, below, first = _children(forest, level, size)
        before = np.cumsum(below) - below
        before -= np.repeat(before[first], forest.fan_ins[level])
        start[child[below > 0]] = (np.repeat(start[level], forest.fan_ins[level]) + before)[below > 0]
    return (start + size - 1).astype(np.int32)


def _homes(chunks: IntArray, slot: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Rows for the slots of every chunk's stack, one stack after the other; their number. -1 needs no row."""
    sizes = np.maximum.reduceat(slot, chunks[:-1]) + 1
    base = np.repeat(np.cumsum(sizes) - sizes, np.diff([*chunks[:-1], len(slot)]))
    return base + slot, int(sizes.sum())


def _slots(forest: Forest, stacked: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Slots of a stack for values that live from a parent's turn to its child's: siblings side by side, above it.

    A node that is not `stacked` takes no slot itself; its number is the highest one in use at its turn.
    """
    slot = np.zeros(forest.nodes, dtype=np.int64)
    for level in reversed(forest.levels):
        child, counts, first = _children(forest, level, stacked.astype(np.int64))
        rank = np.cumsum(counts)
        rank -= np.repeat(rank[first] - counts[first], forest.fan_ins[level])
        slot[child[child >= 0]] = (np.repeat(slot[level], forest.fan_ins[level]) + rank)[child >= 0]
    return slot


def _children(
    forest: Forest, level: slice, weight: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], IntArray]:
    """For the edges of a level: the child node and its weight (0 for synapses), and where each node's edges begin."""
    edges = slice(forest.offsets[level.start], forest.offsets[level.stop])
    child = forest.source[edges] - forest.in_features
    return child, np.where(child >= 0, weight[child.clip(0)], 0), forest.offsets[level] - forest.offsets[level.start]


def _chunks(root_places: IntArray, bundle: int) -> IntArray:
    """Cut the places into at most MAX_CHUNKS runs of whole bundles."""
    neurons = len(root_places)
    bundles = -(-neurons // bundle)
    count = min(bundles, MAX_CHUNKS)
    last_neuron = np.minimum(np.arange(1, count + 1) * bundles // count * bundle, neurons) - 1
    return np.concatenate([[0], root_places[last_neuron] + 1]).astype(np.int32)
