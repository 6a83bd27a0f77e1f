"""The structure of dendritic trees: edges, nodes, levels and their counts.

A `Forest` holds the trees of all neurons of a layer as one edge list in topological order. It contains no weights and
no tensors: layers and kernels read it, wirings set which input each synapse reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import OptionError, ShapeError, check_int
from .levels import Branching, NestedTree, level_sizes, nested_edges

IntArray: TypeAlias = npt.NDArray[np.int32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

MAX_ROWS = 2**31 - 1  # rows and edges are 32-bit: half the memory traffic of 64-bit indices in the kernels


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of a layer's neurons.

    Rows `0 ... in_features - 1` are the inputs, then follows one row per node. Edge `e` adds
    `weight[e] * row[source[e]]` to its node; the edges of node `n` are `offsets[n] ... offsets[n + 1] - 1`; the
    children of a node come before it. An edge from an input is a *synapse*, a node is a *dendrite*, the nodes
    listed in `roots` are the neurons' outputs.

    Build one with `Forest.grow`, `Forest.nested` or `Forest.join`. A new forest is unwired: synapse `s` reads
    row `s`. `wired` attaches the synapses to the inputs of a layer.

    Args:
        in_features: number of input rows.
        source: the row each edge reads, shape (edges,).
        offsets: where the edges of each node begin, shape (nodes + 1,).
        roots: the node that is the output of each neuron, shape (neurons,).

    Example:
        >>> forest = Forest.grow(32, fan_in=1024)
        >>> forest.depth, forest.edges, forest.nodes, forest.parameters()
        (2, 1056, 33, 1089)
    """

    in_features: int
    source: IntArray
    offsets: IntArray
    roots: IntArray

    def __post_init__(self) -> None:
        check_int("in_features", self.in_features)
        for name in ("source", "offsets", "roots"):
            given = np.asarray(getattr(self, name))
            if given.ndim != 1 or (given.size and (given.dtype.kind not in "iu" or abs(given).max() > MAX_ROWS)):
                raise ShapeError(f"{name} must be a row of integers within 2**31: got {given.dtype} {_brief(given)}")
            array = given.astype(np.int32)
            array.setflags(write=False)  # shared between layers and caches: must never change
            object.__setattr__(self, name, array)
        self._check()

    def _check(self) -> None:
        """Reject an edge list that is not a forest; every later computation relies on it."""
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

    # ------------------------------------------------------------------------------------------------ construction

    @classmethod
    def grow(
        cls,
        branching: Branching,
        *,
        fan_in: int | None = None,
        depth: int | None = None,
        neurons: int = 1,
        ragged: bool = False,
    ) -> Forest:
        """Grow `neurons` equal trees, level by level from the synapses to the root.

        Args:
            branching: children of a node; an int, or one number per level, leaf level first.
            fan_in: synapses of a neuron. Without it, what `branching` and `depth` give.
            depth: edges from a leaf to the root. Without it, what `branching` and `fan_in` give.
            neurons: number of trees.
            ragged: accept any fan-in: a level of n children has ceil(n / b) nodes, as equal as can be, larger first.

        Example:
            >>> Forest.grow([16, 8]).describe()
            '1 tree of 128 synapses, 8 + 1 dendrites'
            >>> Forest.grow(3, fan_in=10, ragged=True).fan_ins.tolist()
            [3, 3, 2, 2, 2, 2, 2]
        """
        neurons = check_int("neurons", neurons)
        sizes = level_sizes(branching, fan_in=fan_in, depth=depth, ragged=ragged)
        if neurons * sum(sizes) > MAX_ROWS:
            raise ShapeError(f"a forest must have fewer than 2**31 rows: got {neurons} trees of {sum(sizes):,}")
        fan_ins = []
        for children, nodes in itertools.pairwise(sizes):
            level = np.int32(children // nodes) + (np.arange(nodes) < children % nodes)
            fan_ins.append(np.tile(level, neurons))  # (neurons, nodes): a level of all trees, then the next level
        # Level by level every row is read once and in order, so edge e reads row e.
        offsets = _offsets(np.concatenate(fan_ins))
        edges = np.arange(offsets[-1], dtype=np.int32)
        roots = np.arange(len(offsets) - 1 - neurons, len(offsets) - 1, dtype=np.int32)
        return cls(neurons * sizes[0], edges, offsets, roots)

    @classmethod
    def nested(cls, tree: NestedTree) -> Forest:
        """Grow one unbalanced tree from nested children: an int is that many synapses, a list is a dendrite.

        Example:
            >>> Forest.nested([3, [2], [2, [4]]]).describe()
            '1 tree of 11 synapses, 2 + 1 + 1 dendrites'
        """
        synapses, source, fan_ins = nested_edges(tree)
        roots = np.array([len(fan_ins) - 1], dtype=np.int32)
        return cls(synapses, np.array(source, dtype=np.int32), _offsets(fan_ins), roots)

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """Put unwired forests side by side: the neurons of one layer may have different trees.

        Example:
            >>> Forest.join([Forest.grow(2, fan_in=4), Forest.grow(3, fan_in=3)]).describe()
            '2 unequal trees of 7 synapses, 3 + 1 dendrites'
        """
        if not forests:
            raise OptionError("join must be given at least one forest: got none")
        for forest in forests:
            if not np.array_equal(forest.synapse_inputs, np.arange(forest.in_features)):
                raise OptionError(f"join takes unwired forests, where synapse s reads row s: got a wired {forest!r}")
        synapses = sum(forest.synapses for forest in forests)
        firsts = np.cumsum([0, *(forest.nodes for forest in forests)])
        # Number the nodes level by level across all forests, so that one level stays one vectorized step.
        order = np.argsort(np.concatenate([forest.height_of_node for forest in forests]), kind="stable")
        place = np.argsort(order)
        is_synapse = np.concatenate([forest.source < forest.in_features for forest in forests])
        children = [forest.source - forest.in_features + first for forest, first in zip(forests, firsts, strict=False)]
        source = synapses + place[np.concatenate(children).clip(0)]  # for synapses a placeholder
        fan_ins = np.concatenate([forest.fan_ins for forest in forests])
        begin = np.cumsum(fan_ins) - fan_ins
        offsets = _offsets(fan_ins[order])
        edges = np.repeat(begin[order] - offsets[:-1], fan_ins[order]) + np.arange(offsets[-1])
        roots = np.concatenate([place[forest.roots + first] for forest, first in zip(forests, firsts, strict=False)])
        source = source[edges]
        source[is_synapse[edges]] = np.arange(synapses)
        return cls(synapses, source, offsets, roots)

    def wired(self, index: npt.ArrayLike, in_features: int) -> Forest:
        """Attach the synapses, in edge order, to the inputs `index` of a layer of `in_features` inputs.

        Example:
            >>> Forest.grow(2, fan_in=4).wired([0, 2, 1, 0], in_features=3).source.tolist()
            [0, 2, 1, 0, 3, 4]
        """
        in_features = check_int("in_features", in_features)
        index = np.asarray(index)
        if index.shape != (self.synapses,) or not np.issubdtype(index.dtype, np.integer):
            raise ShapeError(
                f"a wiring must hold one integer for each of {self.synapses} synapses: got {index.dtype} of shape "
                f"{index.shape}"
            )
        if index.min() < 0 or index.max() >= in_features:
            raise ShapeError(f"a wiring must name inputs 0 ... {in_features - 1}: got {index.min()} ... {index.max()}")
        source = self.source.astype(np.int64) + (in_features - self.in_features)  # checked against 2**31 by Forest
        source[self.synapse_edges] = index
        return Forest(in_features, source, self.offsets, self.roots)  # type: ignore[arg-type]

    def part(self, nodes: BoolArray, edges: BoolArray, source: IntArray | None = None) -> Forest:
        """The nodes and edges that are marked, as a forest of the same inputs; `source` replaces what edges read.

        >>> forest = Forest.grow(2, fan_in=4, neurons=2)
        >>> second = forest.neuron_of_node == 1
        >>> forest.part(second, second[forest.node_of_edge]).source.tolist()
        [4, 5, 6, 7, 8, 9]
        """
        number = np.cumsum(nodes) - 1  # of each node that stays
        kept = (self.source if source is None else source)[edges]
        is_node = kept >= self.in_features
        kept[is_node] = self.in_features + number[kept[is_node] - self.in_features]
        fan_ins = np.bincount(self.node_of_edge[edges], minlength=self.nodes)[nodes]
        return Forest(self.in_features, kept, _offsets(fan_ins), number[self.roots[nodes[self.roots]]])

    # ------------------------------------------------------------------------------------------------------ counts

    @property
    def edges(self) -> int:
        """Number of edges, which is the number of weights."""
        return len(self.source)

    @property
    def nodes(self) -> int:
        """Number of dendrites, roots included, which is the number of biases."""
        return len(self.offsets) - 1

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

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one forward pass for one sample: one per edge."""
        return self.edges

    def parameters(self, bias: bool = True) -> int:
        """Number of weights, and of biases if there are any.

        >>> Forest.grow(2, fan_in=784, ragged=True).parameters()
        2357
        """
        return self.edges + (self.nodes if bias else 0)

    @cached_property
    def masked_weights(self) -> int:
        """Weights that the paper's masked dense matrices store for this forest: pending rows times nodes, by level.

        >>> Forest.grow(2, fan_in=1024, neurons=10).masked_weights
        69905000
        """
        pending, total = self.synapses, 0
        for level, edges, _ in self.ascend():
            nodes = level.stop - level.start
            total += pending * nodes
            pending += nodes - (edges.stop - edges.start)
        return total

    # --------------------------------------------------------------------------------------------------- structure

    @cached_property
    def fan_ins(self) -> IntArray:
        """Children of each node, shape (nodes,)."""
        return np.diff(self.offsets)

    @cached_property
    def node_of_edge(self) -> IntArray:
        """The node each edge belongs to, shape (edges,)."""
        return np.repeat(np.arange(self.nodes, dtype=np.int32), self.fan_ins)

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

    @property
    def neuron_of_synapse(self) -> IntArray:
        """The neuron each synapse belongs to, shape (synapses,)."""
        return self.neuron_of_node[self.node_of_edge[self.synapse_edges]]

    @cached_property
    def fan_in_of_neuron(self) -> IntArray:
        """Synapses of each neuron, shape (neurons,)."""
        return np.bincount(self.neuron_of_synapse, minlength=self.neurons).astype(np.int32)

    def describe(self) -> str:
        """One line for people: trees, synapses, dendrites by level."""
        sizes = np.bincount(self.height_of_node)[1:].tolist()
        trees, shared = f"{self.neurons} unequal trees", 1
        if self._trees_look_equal():
            trees, shared = f"{self.neurons} tree{'s' if self.neurons > 1 else ''}", self.neurons
        dendrites = " + ".join(f"{size // shared:,}" for size in sizes)
        return f"{trees} of {self.synapses // shared:,} synapses, {dendrites} dendrites"

    def _trees_look_equal(self) -> bool:
        """Whether all trees have the same sequence of heights and fan-ins."""
        if self.nodes % self.neurons:
            return False
        order = np.lexsort((self.height_of_node, self.neuron_of_node))
        arrays = np.stack([self.neuron_of_node, self.height_of_node, self.fan_ins])
        trees = arrays[:, order].reshape(3, self.neurons, -1)
        return bool((trees[0] == np.arange(self.neurons)[:, None]).all() and (trees[1:] == trees[1:, :1]).all())

    def difference(self, other: Forest) -> str | None:
        """Name the first difference between two forests, or None if they are equal.

        >>> Forest.grow(2, fan_in=4).difference(Forest.grow(4, fan_in=4))
        'edges 6 against 4'
        """
        for name in ("in_features", "neurons", "synapses", "edges", "nodes"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} {mine:,} against {theirs:,}"
        for name in ("offsets", "roots", "source"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not np.array_equal(mine, theirs):
                at = int((mine != theirs).argmax())
                both_inputs = name == "source" and max(mine[at], theirs[at]) < self.in_features
                return f"{'wiring' if both_inputs else 'tree'}: {name}[{at}] is {mine[at]} against {theirs[at]}"
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.difference(other) is None

    def __hash__(self) -> int:
        return hash((self.in_features, self.source.tobytes(), self.offsets.tobytes(), self.roots.tobytes()))

    def __repr__(self) -> str:
        # counts only: debuggers print half-made forests too, whose levels cannot be found
        return f"Forest({self.in_features} inputs, {self.edges} edges, {self.nodes} nodes, {self.neurons} roots)"


def _offsets(fan_ins: npt.ArrayLike) -> IntArray:
    fan_ins = np.asarray(fan_ins)
    offsets = np.zeros(len(fan_ins) + 1, dtype=np.int32)
    np.cumsum(fan_ins, out=offsets[1:])
    return offsets


def _brief(array: IntArray) -> str:
    return np.array2string(array, threshold=8, edgeitems=3)
