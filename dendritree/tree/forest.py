"""Dendritic trees: balanced, ragged, unbalanced or tied, and parts of them.

A `Forest` holds the trees of all neurons of a layer as one edge list in topological order. It contains no weights and
no tensors: layers and kernels read it, wirings set which input each synapse reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OptionError, ShapeError, check_int
from .edges import ARRAYS, MAX_ROWS, BoolArray, EdgeList, IntArray, offsets_of
from .levels import Branching, NestedTree, level_sizes, nested_edges

__all__ = ["BoolArray", "Forest", "IntArray"]


@dataclass(frozen=True, eq=False)
class Forest(EdgeList):
    """The trees of a layer's neurons.

    Rows `0 ... in_features - 1` are the inputs; one row per node follows. Edge `e` adds
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
        template: for each node, the first node that has its weights and bias, shape (nodes,). Nodes with the same
            template are *tied*: they share parameters. None if every node is its own template.

    Example:
        >>> forest = Forest.grow(32, fan_in=1024)
        >>> forest.depth, forest.edges, forest.nodes, forest.parameters()
        (2, 1056, 33, 1089)
    """

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
            fan_in: synapses per neuron; by default it follows from `branching` and `depth`.
            depth: edges from a leaf to the root; by default it follows from `branching` and `fan_in`.
            neurons: number of trees.
            ragged: accept any fan-in: a level of n children has ceil(n / b) nodes, as equal as possible, larger first.

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
        offsets = offsets_of(np.concatenate(fan_ins))
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
        return cls(synapses, np.array(source, dtype=np.int32), offsets_of(fan_ins), roots)

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
        children, roots, ties, first = [], [], [], 0
        for forest in forests:
            child = forest.source - forest.in_features
            children.append(np.where(child < 0, -1, child + first))  # -1 is a synapse
            roots.append(forest.roots + first)
            ties.append(forest.bias_of_node + first)
            first += forest.nodes
        # Number the nodes level by level across all forests, so that one level stays one vectorized step.
        order = np.argsort(np.concatenate([forest.height_of_node for forest in forests]), kind="stable")
        number, fan_ins = np.argsort(order), np.concatenate([forest.fan_ins for forest in forests])
        offsets = offsets_of(fan_ins[order])
        edges = np.repeat(offsets_of(fan_ins)[order] - offsets[:-1], fan_ins[order]) + np.arange(offsets[-1])
        child = np.concatenate(children)[edges]
        source = np.where(child < 0, np.cumsum(child < 0) - 1, synapses + number[child])
        template = _templates(np.concatenate(ties)[order])
        return cls(synapses, source, offsets, number[np.concatenate(roots)], template)  # type: ignore[arg-type]

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
        return Forest(in_features, source, self.offsets, self.roots, self.template)  # type: ignore[arg-type]

    def tied(self, template: npt.ArrayLike | None) -> Forest:
        """The same trees with these templates; None ties no nodes.

        Example:
            >>> forest = Forest.grow([8, 2]).tied([0, 0, 2])  # both dendrites have the same eight weights and bias
            >>> forest.edges, forest.weights, forest.parameters()
            (18, 10, 12)
        """
        return Forest(self.in_features, self.source, self.offsets, self.roots, template)  # type: ignore[arg-type]

    def part(self, nodes: BoolArray, edges: BoolArray, source: IntArray | None = None) -> Forest:
        """The marked nodes and edges as a forest with the same inputs; `source` replaces the rows that edges read.

        Tied nodes must keep the same edges. The first of those that are left is the template of the others.

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
        template = None
        if self.template is not None:
            template = _templates(self.template[nodes])
            near = nodes[self.node_of_edge]  # edges of nodes that stay
            stays = np.zeros(self.weights, dtype=bool)
            stays[self.weight_of_edge[near & edges]] = True
            if (stays[self.weight_of_edge] & near & ~edges).any():
                raise ShapeError("tied nodes must keep the same edges: got a part in which they differ")
        return Forest(self.in_features, kept, offsets_of(fan_ins), number[self.roots[nodes[self.roots]]], template)

    def describe(self) -> str:
        """Describe the forest in one line: trees, synapses, dendrites by level."""
        sizes = np.bincount(self.height_of_node)[1:].tolist()
        trees, shared, different = f"{self.neurons} unequal trees", 1, 1
        if self._trees_look_equal():
            trees, shared = f"{self.neurons} tree{'s' if self.neurons > 1 else ''}", self.neurons
            different = int(self.tree_of_neuron.max()) + 1
            trees += "" if different == self.neurons else f" ({different:,} different)"
        dendrites = " + ".join(f"{size // shared:,}" for size in sizes)
        tied = "" if self.template is None else f", {self.biases // different:,} of them with weights of their own"
        synapses = self.synapses // shared
        plurals = ["" if count in (1, "1") else "s" for count in (synapses, dendrites)]
        return f"{trees} of {synapses:,} synapse{plurals[0]}, {dendrites} dendrite{plurals[1]}{tied}"

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
        for name in ("in_features", "neurons", "synapses", "edges", "nodes", "weights"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name} {mine:,} against {theirs:,}"
        for name in ("offsets", "roots", "bias_of_node", "source"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not np.array_equal(mine, theirs):
                at = int((mine != theirs).argmax())
                both_inputs = name == "source" and max(mine[at], theirs[at]) < self.in_features
                return f"{'wiring' if both_inputs else 'tree'}: {name}[{at}] is {mine[at]} against {theirs[at]}"
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.difference(other) is None

    def __hash__(self) -> int:
        arrays = (getattr(self, name) for name in ARRAYS)
        return hash((self.in_features, *(None if array is None else array.tobytes() for array in arrays)))

    def __repr__(self) -> str:
        # counts only: a debugger may print a forest under construction, whose levels are not known yet
        return f"Forest({self.in_features} inputs, {self.edges} edges, {self.nodes} nodes, {self.neurons} roots)"


def _templates(ties: npt.NDArray[np.integer[Any]]) -> IntArray:
    """The first node of each group of tied nodes, for every node; nodes with the same number are tied."""
    _, first, group = np.unique(ties, return_index=True, return_inverse=True)
    template: IntArray = first[group].astype(np.int32)
    return template
