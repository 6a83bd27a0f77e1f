"""A forest laid out for the fused kernels.

Nodes get *places*, the order in which they are computed, children before parents. *Chunks* are runs of neurons, for
threads to take and so small that the values they hold at a time stay in the second cache. Within a chunk come first the
*segments*, subtrees of few synapses, sorted by the inputs they read, so that neighbors find those inputs in the first
cache; then all nodes above them.

The value of a node lives in a *slot* of working memory until its parent has read it. Within a segment slots are a
stack: the children of a node lie from its own slot on, and its value takes the place of its first child's. The backward
pass goes the same way in reverse, so that the same slots serve it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..tree import Forest
from .header import COLUMNS, EDGE, FIRST, NODE, ROOT, Sizes

__all__ = ["Program", "make_program"]

SEGMENT = 64
"""Synapses of a segment at most."""

CHUNK = 1024
"""Values that a chunk may hold beside its segments: 512 kB for tiles of 128 numbers."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """All tables in one tensor, so that a compiled graph carries one constant."""

    tables: Tensor
    """32-bit integers: the tables one after the other."""
    sizes: Sizes

    @cached_property
    def packed_sizes(self) -> Tensor:
        """The sizes as the kernels read them."""
        return torch.tensor(self.sizes)

    def forest(self) -> Forest:
        """The forest that was laid out.

        >>> forest = Forest.nested([3, [2], [2, [4]]])
        >>> make_program(forest).forest() == forest
        True
        """
        tables, sizes = self.tables.numpy(), self.sizes
        places = tables[: COLUMNS * sizes.nodes].reshape(sizes.nodes, COLUMNS)
        source = tables[sizes.rows_at // 4 :][: sizes.edges].copy()
        children = places[places[:, EDGE] >= 0]
        source[children[:, EDGE]] = sizes.features + children[:, NODE]
        by_node, outputs = places[places[:, NODE].argsort()], places[places[:, ROOT] >= 0]
        offsets = np.append(by_node[:, FIRST], sizes.edges)
        return Forest(sizes.features, source, offsets, outputs[outputs[:, ROOT].argsort()][:, NODE])


def make_program(forest: Forest) -> Program:
    """Lay out a forest.

    >>> make_program(Forest.grow(2, fan_in=8, neurons=4)).sizes.slots
    5
    """
    features, nodes = forest.in_features, forest.nodes
    inner = forest.source >= features
    child, parent_of_child = forest.source[inner] - features, forest.node_of_edge[inner]
    parent, edge = np.full(nodes, -1), np.full(nodes, -1)
    parent[child], edge[child] = parent_of_child, np.flatnonzero(inner)

    synapses, first_input = _below(forest)
    has_dendrites = np.add.reduceat(inner, forest.offsets[:-1], dtype=np.int64) > 0
    in_segment = (synapses <= SEGMENT) | ~has_dendrites
    is_head = in_segment & ((parent < 0) | ~in_segment[parent])
    held = is_head | ~in_segment
    chunk_of_neuron = _chunks(np.bincount(forest.neuron_of_node[held], minlength=forest.neurons))
    chunk = chunk_of_neuron[forest.neuron_of_node]

    head, slot, depth_first = _walk(forest, is_head)
    order = np.lexsort((depth_first, forest.neuron_of_node[head], first_input[head] * in_segment, ~in_segment, chunk))
    place = np.empty(nodes, np.int64)
    place[order] = np.arange(nodes)

    stack = int(slot.max(initial=-1)) + 1
    held_in_order = order[held[order]]
    first_held = np.searchsorted(chunk[held_in_order], np.arange(chunk_of_neuron[-1] + 1))
    slot[held_in_order] = stack + np.arange(len(held_in_order)) - first_held[chunk[held_in_order]]

    root = np.full(nodes, -1)
    root[forest.roots] = np.arange(forest.neurons)
    leading = np.where(inner, np.arange(forest.edges), forest.edges)  # synapses up to a node's first dendrite
    leading = np.minimum(np.minimum.reduceat(leading, forest.offsets[:-1]), forest.offsets[1:]) - forest.offsets[:-1]
    above = parent >= 0
    columns: list[npt.NDArray[np.integer[Any]]] = [
        np.arange(nodes),
        forest.offsets[:-1],
        forest.fan_ins,
        leading,
        slot,
        np.where(above, slot[parent], -1),
        np.where(above, place[parent], -1),
        edge,
        root,
    ]
    rows = np.where(inner, -1 - slot[np.where(inner, forest.source - features, 0)], forest.source)
    chunks = np.arange(chunk_of_neuron[-1] + 2)
    bounds = np.stack([np.searchsorted(chunk[order], chunks), np.searchsorted(chunk_of_neuron, chunks)], axis=1)
    tables = [np.stack(columns, axis=1)[order].ravel(), rows, bounds.ravel()]
    return Program(
        torch.as_tensor(np.concatenate(tables, dtype=np.int32, casting="same_kind"), device="cpu"),
        Sizes(
            features=features,
            neurons=forest.neurons,
            nodes=nodes,
            edges=forest.edges,
            chunks=len(bounds) - 1,
            slots=int(slot.max()) + 1,
            widest=int(np.diff(bounds[:, 1]).max()),
            places_at=0,
            rows_at=4 * len(tables[0]),
            chunks_at=4 * (len(tables[0]) + len(rows)),
        ),
    )


def _below(forest: Forest) -> tuple[Integers, Integers]:
    """For each node, how many synapses lie below it, and the first input that they read."""
    count = np.ones(forest.in_features + forest.nodes, np.int64)
    first = np.arange(forest.in_features + forest.nodes)
    for level, edges, begin in forest.ascend():
        rows = slice(forest.in_features + level.start, forest.in_features + level.stop)
        count[rows] = np.add.reduceat(count[forest.source[edges]], begin)
        first[rows] = np.minimum.reduceat(first[forest.source[edges]], begin)
    return count[forest.in_features :], first[forest.in_features :]


def _chunks(held: Integers) -> Integers:
    """The chunk of each neuron, given how many values each holds. They depend on the forest alone, not on the threads:
    two at least, for two threads, as equal as neurons allow."""
    count = max(2, -(-int(held.sum()) // CHUNK))
    count = count if count == 2 else -(-count // 4) * 4
    before = np.cumsum(held) - held
    chunks: Integers = np.unique(before * count // int(held.sum()), return_inverse=True)[1].astype(np.int64)
    return chunks


def _walk(forest: Forest, is_head: npt.NDArray[np.bool_]) -> tuple[Integers, Integers, Integers]:
    """For each node the head of its segment (itself above all segments), its slot in the segment's stack (-1 for heads
    and what is above them), and its number in a walk of all trees, children before parents, each branch in one run."""
    size = np.ones(forest.in_features + forest.nodes, np.int64)  # of the subtree; inputs have none
    size[: forest.in_features] = 0
    for level, edges, begin in forest.ascend():
        rows = slice(forest.in_features + level.start, forest.in_features + level.stop)
        size[rows] += np.add.reduceat(size[forest.source[edges]], begin)
    size = size[forest.in_features :]
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
