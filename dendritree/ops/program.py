"""A forest laid out for the fused kernels.

The *place* of a node is its position in the order of computation, children before parents. *Chunks* are runs of neurons
that threads take, small enough that the values they hold at a time stay in the L2 cache. A chunk starts with its
*segments*, subtrees with few synapses, sorted by the inputs they read, so that neighbors find those inputs in the L1
cache; all nodes above them follow.

The value of a node is held in a *slot* of working memory until its parent has read it. Within a segment, slots form a
stack: the children of a node are stored from its own slot on, and its value replaces that of its first child. The
backward pass uses the same order in reverse, and so the same slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..tree import Forest, IntArray
from .patches import PatchGrid
from .sheets import Sheet, row_shifts

__all__ = ["Program", "make_program"]

SEGMENT = 64
"""Maximum synapses of a segment."""

CHUNK_VALUES = 1024
"""Maximum values that a chunk may hold besides its segments: 512 kB for tiles of 128 numbers."""

SHEETS = 16
"""The number of image sizes whose tables a program caches."""

Integers = npt.NDArray[np.int64]

_COLUMNS = ("node", "first", "fan_in", "synapses", "slot", "parent_slot", "parent", "edge", "root", "is_quarter")
PLACE = np.dtype([(name, np.int32) for name in _COLUMNS])
CHUNK = np.dtype([("place", np.int32), ("neuron", np.int32)])
"""Rows of the tables of places and of chunks: `cpu/call.hpp` describes them."""


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
    rows_at: int
    """The table with, for each edge, the input it reads, or -1 - slot of the dendrite it reads."""
    chunks_at: int


@dataclass(frozen=True)
class Program:
    """The tables of a forest, all in one tensor, so that a compiled graph carries a single constant."""

    tables: Tensor
    """The tables one after another, as 32-bit integers."""
    sizes: Sizes

    def shifted(self, grid: PatchGrid, sheet: Sheet) -> Tensor:
        """The table of rows for images: distances of inputs in planes."""
        rows_of_sheet = self._shifted.get((grid, sheet))
        if rows_of_sheet is None:
            rows = self.tables.numpy()[self.sizes.rows_at // 4 :][: self.sizes.edges].copy()
            synapse = rows >= 0
            rows[synapse] = row_shifts(grid, sheet)[rows[synapse]]
            rows_of_sheet = torch.from_numpy(rows)
            if len(self._shifted) >= SHEETS:
                self._shifted.clear()
            self._shifted[grid, sheet] = rows_of_sheet
        return rows_of_sheet

    @cached_property
    def _shifted(self) -> dict[tuple[PatchGrid, Sheet], Tensor]:
        return {}

    def forest(self) -> Forest:
        """The forest that was laid out.

        >>> forest = Forest.nested([3, [2], [2, [4]]])
        >>> make_program(forest).forest() == forest
        True
        """
        tables, sizes = self.tables.numpy(), self.sizes
        places, source = tables[: sizes.rows_at // 4].view(PLACE), tables[sizes.rows_at // 4 :][: sizes.edges].copy()
        children, roots = places[places["edge"] >= 0], places[places["root"] >= 0]
        source[children["edge"]] = sizes.features + children["node"]
        offsets = np.append(places["first"][places["node"].argsort()], sizes.edges)
        return Forest(sizes.features, source, offsets, roots["node"][roots["root"].argsort()])


def make_program(forest: Forest) -> Program:
    """Lay out a forest.

    >>> make_program(Forest.grow(2, fan_in=8, neurons=4)).sizes.slots
    5
    """
    features, nodes = forest.in_features, forest.nodes
    inner = forest.source >= features  # edges from dendrites
    child = forest.source[inner] - features
    parent, edge, root = np.full((3, nodes), -1)
    parent[child], edge[child] = forest.node_of_edge[inner], np.flatnonzero(inner)
    root[forest.roots] = np.arange(forest.neurons)

    in_segment = _in_segment(forest, inner)
    is_head = in_segment & ((parent < 0) | ~in_segment[parent])
    is_held = is_head | ~in_segment  # values that outlive their segment
    chunk_of_neuron = _chunks(np.bincount(forest.neuron_of_node[is_held], minlength=forest.neurons))
    chunk = chunk_of_neuron[forest.neuron_of_node]
    head, slot, walk = _walk(forest, is_head)
    first_input = _combined_below(forest, np.arange(features + nodes), np.minimum)
    # The last key is the primary one: by chunk, segments first, then by their inputs, then by their neurons.
    order = np.lexsort((walk, forest.neuron_of_node[head], first_input[head] * in_segment, ~in_segment, chunk))

    held = order[is_held[order]]
    first_held = np.searchsorted(chunk[held], chunk[held])  # of the same chunk: chunks reuse these slots
    slot[held] = slot.max(initial=-1) + 1 + np.arange(len(held)) - first_held

    begin, end = forest.offsets[:-1], forest.offsets[1:]
    first_inner = np.minimum.reduceat(np.where(inner, np.arange(forest.edges), forest.edges), begin)
    places = np.empty(nodes, PLACE)
    places["node"], places["first"], places["fan_in"] = np.arange(nodes), begin, forest.fan_ins
    places["synapses"] = np.minimum(first_inner, end) - begin
    places["slot"], places["parent_slot"] = slot, np.where(parent >= 0, slot[parent], -1)
    places["parent"] = np.where(parent >= 0, order.argsort()[parent], -1)
    places["edge"], places["root"] = edge, root
    rows = forest.source.copy()
    rows[inner] = -1 - slot[child]
    chunks = np.empty(chunk_of_neuron[-1] + 2, CHUNK)
    chunks["place"] = np.searchsorted(chunk[order], np.arange(len(chunks)))
    chunks["neuron"] = np.searchsorted(chunk_of_neuron, np.arange(len(chunks)))
    places = places[order]
    places["is_quarter"] = _quarters(places, rows, chunk[order])
    tables = [places.view(np.int32), rows, chunks.view(np.int32)]
    return Program(
        torch.as_tensor(np.concatenate(tables), device="cpu"),
        Sizes(
            features=features,
            neurons=forest.neurons,
            nodes=nodes,
            edges=forest.edges,
            chunks=len(chunks) - 1,
            slots=int(slot.max()) + 1,
            widest=int(np.diff(chunks["neuron"]).max()),
            rows_at=places.nbytes,
            chunks_at=places.nbytes + rows.nbytes,
        ),
    )


def _combined_below(forest: Forest, rows: Integers, combine: np.ufunc) -> Integers:
    """For each node, its own number combined with those of all rows below it; `rows` has one per input and node."""
    for level, edges, begin in forest.ascend():
        here = slice(forest.in_features + level.start, forest.in_features + level.stop)
        rows[here] = combine(rows[here], combine.reduceat(rows[forest.source[edges]], begin))
    return rows[forest.in_features :]


def _quarters(places: npt.NDArray[np.void], rows: IntArray, chunk: Integers) -> npt.NDArray[np.bool_]:
    """Which places belong to four consecutive ones, in one chunk, whose nodes read the same inputs and no dendrite."""
    first, fan_in = places["first"].astype(np.int64), places["fan_in"].astype(np.int64)
    alike = (fan_in[1:] == fan_in[:-1]) & (chunk[1:] == chunk[:-1])
    alike &= (places["synapses"] == fan_in)[1:] & (places["synapses"] == fan_in)[:-1]
    if alike.any():  # alike in size so far: compare their rows, edge by edge
        count = fan_in[:-1][alike]
        begin = np.cumsum(count) - count
        edge = np.arange(count.sum()) - np.repeat(begin, count)
        here, there = (np.repeat(which[alike], count) + edge for which in (first[:-1], first[1:]))
        alike[alike] = np.logical_and.reduceat(rows[here] == rows[there], begin)
    run = np.cumsum(np.concatenate([[False], ~alike]))
    length, place = np.bincount(run), np.arange(len(run))
    rank = place - np.searchsorted(run, run)
    quarters: npt.NDArray[np.bool_] = rank < length[run] // 4 * 4
    return quarters


def _in_segment(forest: Forest, inner: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether a node belongs to a segment: it has few synapses below it, or nothing but synapses."""
    is_input = np.arange(forest.in_features + forest.nodes) < forest.in_features
    synapses = _combined_below(forest, is_input.astype(np.int64), np.add)
    in_segment: npt.NDArray[np.bool_] = (synapses <= SEGMENT) | ~np.logical_or.reduceat(inner, forest.offsets[:-1])
    return in_segment


def _chunks(held: Integers) -> Integers:
    """The chunk of each neuron, given how many values each holds. Chunks depend only on the forest, not on the threads:
    at least two, for two threads, as equal as possible; a larger number is a multiple of 4, the shares that threads
    take."""
    count = max(2, -(-int(held.sum()) // CHUNK_VALUES))
    count = count if count == 2 else -(-count // 4) * 4
    before = np.cumsum(held) - held
    chunks: Integers = np.unique(before * count // int(held.sum()), return_inverse=True)[1].astype(np.int64)
    return chunks


def _walk(forest: Forest, is_head: npt.NDArray[np.bool_]) -> tuple[Integers, Integers, Integers]:
    """For each node, the head of its segment (itself if it is above all segments), its slot in the segment's stack (-1
    for heads and the nodes above them), and its position in a walk over all trees, children before parents and each
    branch contiguous."""
    is_node = np.arange(forest.in_features + forest.nodes) >= forest.in_features
    size = _combined_below(forest, is_node.astype(np.int64), np.add)  # nodes of the branch that ends in each node
    end, slot, head = np.zeros(forest.nodes, np.int64), np.full(forest.nodes, -1), np.arange(forest.nodes)
    end[forest.roots] = np.cumsum(size[forest.roots])
    for _, child, parent in forest.descend():
        if not len(child):
            continue
        first = np.flatnonzero(np.diff(parent, prepend=-1))  # where the children of each parent begin
        siblings = np.repeat(first, np.diff([*first, len(child)]))
        before = np.cumsum(size[child]) - size[child]
        end[child] = end[parent] - size[parent] + before - before[siblings] + size[child]
        below = (slot[parent] >= 0) | is_head[parent]
        slot[child] = np.where(below, slot[parent].clip(0) + np.arange(len(child)) - siblings, -1)
        head[child] = np.where(below, head[parent], child)
    return head, slot, end - 1
