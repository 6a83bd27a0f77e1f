"""Trees as an edge list: its arrays, the conditions they must meet, and everything that can be derived from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError, check_int

IntArray: TypeAlias = npt.NDArray[np.int32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

MAX_ROWS = 2**31 - 1  # rows and edges are 32-bit: half the memory traffic of 64-bit indices in the kernels

ARRAYS = ("source", "offsets", "roots", "template")


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Trees as one list of edges in topological order; see `dendritree.tree.Forest`."""

    in_features: int
    source: IntArray
    offsets: IntArray
    roots: IntArray
    template: IntArray | None = None

    def __post_init__(self) -> None:
        check_int("in_features", self.in_features)
        for name in ARRAYS if self.template is not None else ARRAYS[:-1]:
            given = np.asarray(getattr(self, name))
            if given.ndim != 1 or (given.size and (given.dtype.kind not in "iu" or abs(given).max() > MAX_ROWS)):
                raise ShapeError(f"{name} must be 1-D integers below 2**31: got {given.dtype} {_brief(given)}")
            array = given.astype(np.int32)
            array.setflags(write=False)  # shared between layers and caches: must never change
            object.__setattr__(self, name, array)
        self._check_edges()
        if self.template is not None:
            self._check_template(self.template)

    def _check_edges(self) -> None:
        """Reject an edge list that is not a forest; every later computation relies on this check."""
        inputs, nodes, source, offsets, roots = self.in_features, self.nodes, self.source, self.offsets, self.roots
        if inputs + nodes > MAX_ROWS:
            raise ShapeError(f"a forest must have fewer than 2**31 rows: got {inputs} inputs, {nodes} nodes")
        if nodes < 1 or offsets[0] != 0 or offsets[-1] != len(source) or (np.diff(offsets) < 1).any():
            raise ShapeError(
                "offsets must rise from 0 to the number of edges, at least one edge per node: "
                f"got {len(source)} edges and offsets {_brief(offsets)}"
            )
        if source.min() < 0 or (source >= inputs + self.node_of_edge).any():
            raise ShapeError(f"source must name one of {inputs} inputs or an earlier node: got {_brief(source)}")
        children = source[source >= inputs] - inputs
        heads = np.concatenate([children, roots])
        inside = len(roots) > 0 and heads.min() >= 0 and heads.max() < nodes
        if not inside or (np.bincount(heads, minlength=nodes) != 1).any():
            raise ShapeError(
                "every node must be either a root or the child of one other node: "
                f"got roots {_brief(roots)} and {len(children)} child edges for {nodes} nodes"
            )

    def _check_template(self, template: IntArray) -> None:
        own, fan_ins = np.arange(self.nodes), self.fan_ins
        earlier = template.shape == own.shape and (template >= 0).all() and (template <= own).all()
        if not earlier or (template[template] != template).any():
            raise ShapeError(f"template must name, for each node, itself or an earlier one: got {_brief(template)}")
        if (differs := fan_ins != fan_ins[template]).any():
            node = int(differs.argmax())
            raise ShapeError(
                f"a node must have as many children as its template: node {node} has {fan_ins[node]}, node "
                f"{template[node]} has {fan_ins[template[node]]}"
            )
        if (template == own).all():
            object.__setattr__(self, "template", None)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.source)

    @property
    def nodes(self) -> int:
        """Number of dendrites, roots included."""
        return len(self.offsets) - 1

    @cached_property
    def weights(self) -> int:
        """Number of weights: one per edge, those of tied nodes counted once."""
        return self.edges if self.template is None else int(self.fan_ins[self.is_template].sum())

    @cached_property
    def biases(self) -> int:
        """Number of biases: one per node, those of tied nodes counted once."""
        return int(self.is_template.sum())

    @property
    def neurons(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @cached_property
    def synapses(self) -> int:
        """Number of edges that read an input."""
        return len(self.synapse_edges)

    @cached_property
    def depth(self) -> int:
        """Edges from the farthest leaf to its root."""
        return int(self.height_of_node.max())

    def parameters(self, bias: bool = True) -> int:
        """Number of weights, and of biases if there are any.

        >>> from dendritree.tree import Forest
        >>> Forest.grow(2, fan_in=784, ragged=True).parameters()
        2357
        """
        return self.weights + (self.biases if bias else 0)

    @cached_property
    def masked_weights(self) -> int:
        """Weights that the paper's masked dense matrices store for this forest: pending rows times nodes, by level.

        >>> from dendritree.tree import Forest
        >>> Forest.grow(2, fan_in=1024, neurons=10).masked_weights
        69905000
        """
        pending, weights = self.synapses, 0
        for level, edges, _ in self.ascend():
            nodes = level.stop - level.start
            weights += pending * nodes
            pending += nodes - (edges.stop - edges.start)
        return weights

    @cached_property
    def fan_ins(self) -> IntArray:
        """Children of each node, shape (nodes,)."""
        return np.diff(self.offsets)

    @cached_property
    def node_of_edge(self) -> IntArray:
        """The node each edge belongs to, shape (edges,)."""
        return np.repeat(np.arange(self.nodes, dtype=np.int32), self.fan_ins)

    @cached_property
    def is_template(self) -> BoolArray:
        """Which nodes have weights of their own, shape (nodes,)."""
        return np.ones(self.nodes, dtype=bool) if self.template is None else self.template == np.arange(self.nodes)

    @cached_property
    def bias_of_node(self) -> IntArray:
        """The bias of each node, shape (nodes,). Biases are numbered in the order of their first nodes."""
        number = (np.cumsum(self.is_template) - 1).astype(np.int32)
        return number if self.template is None else number[self.template]

    @cached_property
    def weight_of_edge(self) -> IntArray:
        """The weight of each edge, shape (edges,). Weights are numbered in the order of their first edges."""
        begin = offsets_of(np.where(self.is_template, self.fan_ins, 0))[:-1]
        template = np.arange(self.nodes) if self.template is None else self.template
        return np.repeat(begin[template] - self.offsets[:-1], self.fan_ins) + np.arange(self.edges, dtype=np.int32)

    @cached_property
    def reads_copy(self) -> BoolArray:
        """Which edges read a copy: a dendrite that is tied to a sibling, shape (edges,).

        >>> from dendritree.tree import Forest
        >>> Forest.nested([1, [2], [2]]).tied([0, 0, 2]).reads_copy.tolist()
        [False, False, False, False, False, True, True]
        """
        copies = np.zeros(self.edges, dtype=bool)
        if self.template is not None:
            inner = np.flatnonzero(self.source >= self.in_features)
            pairs = self.node_of_edge[inner].astype(np.int64) * self.nodes
            pairs += self.template[self.source[inner] - self.in_features]  # one number per parent and template
            _, group, count = np.unique(pairs, return_inverse=True, return_counts=True)
            copies[inner] = count[group] > 1
        return copies

    @cached_property
    def synapse_edges(self) -> IntArray:
        """The edges that read an input, shape (synapses,)."""
        return np.flatnonzero(self.source < self.in_features).astype(np.int32)

    @property
    def synapse_inputs(self) -> IntArray:
        """The wiring: the input each synapse reads, shape (synapses,)."""
        return self.source[self.synapse_edges]

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """Runs of nodes that do not read each other, leaf level first: one vectorized step each."""
        newest = np.maximum.reduceat(self.source, self.offsets[:-1])  # the last row a node waits for
        levels, start = [], 0
        while start < self.nodes:
            waiting = newest[start:] >= self.in_features + start
            stop = start + int(waiting.argmax()) if waiting.any() else self.nodes
            levels.append(slice(start, stop))
            start = stop
        return tuple(levels)

    def ascend(self) -> Iterator[tuple[slice, slice, IntArray]]:
        """Levels, children before parents: the nodes, their edges, and where the edges of each node begin.

        `np.add.reduceat(values[edges], begin)` is a sum per node.
        """
        for level in self.levels:
            edges = slice(int(self.offsets[level.start]), int(self.offsets[level.stop]))
            yield level, edges, self.offsets[level] - edges.start

    def descend(self) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Levels, parents before children: the edges between nodes, the child that each reads, and its parent.

        >>> from dendritree.tree import Forest
        >>> [[step.tolist() for step in steps] for steps in Forest.grow(2, fan_in=4).descend()]
        [[[4, 5], [0, 1], [2, 2]], [[], [], []]]
        """
        for level in reversed(self.levels):
            edges = np.arange(self.offsets[level.start], self.offsets[level.stop], dtype=np.int32)
            edges = edges[self.source[edges] >= self.in_features]
            yield edges, self.source[edges] - self.in_features, self.node_of_edge[edges]

    @cached_property
    def height_of_node(self) -> IntArray:
        """Edges from the farthest leaf below each node, shape (nodes,)."""
        rows = np.zeros(self.in_features + self.nodes, dtype=np.int32)
        height = rows[self.in_features :]
        for level, edges, begin in self.ascend():
            height[level] = np.maximum.reduceat(rows[self.source[edges]], begin) + 1
        return height

    @cached_property
    def neuron_of_node(self) -> IntArray:
        """The neuron each node belongs to, shape (nodes,)."""
        neuron = np.empty(self.nodes, dtype=np.int32)
        neuron[self.roots] = np.arange(self.neurons)
        for _, child, parent in self.descend():
            neuron[child] = neuron[parent]
        return neuron

    @cached_property
    def tree_of_neuron(self) -> IntArray:
        """The number of each neuron's tree, shape (neurons,): the same for neurons that share all their weights.

        >>> from dendritree.tree import Forest
        >>> Forest.grow(2, fan_in=2, neurons=3).tied([0, 0, 2]).tree_of_neuron.tolist()
        [0, 0, 1]
        """
        return np.unique(self.bias_of_node[self.roots], return_inverse=True)[1].astype(np.int32)

    @property
    def neuron_of_synapse(self) -> IntArray:
        """The neuron each synapse belongs to, shape (synapses,)."""
        return self.neuron_of_node[self.node_of_edge[self.synapse_edges]]

    @cached_property
    def fan_in_of_neuron(self) -> IntArray:
        """Synapses of each neuron, shape (neurons,)."""
        return np.bincount(self.neuron_of_synapse, minlength=self.neurons).astype(np.int32)


def offsets_of(fan_ins: npt.ArrayLike) -> IntArray:
    """Where the edges of each node begin, and where those of the last one end.

    >>> offsets_of([3, 2]).tolist()
    [0, 3, 5]
    """
    fan_ins = np.asarray(fan_ins)
    offsets = np.zeros(len(fan_ins) + 1, dtype=np.int32)
    np.cumsum(fan_ins, out=offsets[1:])
    return offsets


def _brief(array: IntArray) -> str:
    return np.array2string(array, threshold=8, edgeitems=3)
