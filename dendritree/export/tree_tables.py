"""What C code has to know of trees: computed where it is regular, the smallest table where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tree import Forest

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers by index: `first + index * step`, or values."""

    first: int = 0
    step: int = 0
    values: Ints | None = None


@dataclass(frozen=True, eq=False)
class TreeTables:
    """The trees of a layer, one after the other, the nodes of each in topological order."""

    weights: Ints
    """The weight of each stored weight."""
    biases: Ints
    """The bias of each stored bias."""
    source: Table
    """The row that an edge reads, or a synapse of regular trees: of all trees, or of one if `by_neuron`."""
    base: Table | None
    """What to add for each neuron."""
    fan: Table
    """Children by node."""
    count: Table
    """Nodes by neuron."""
    bias: Table
    """The bias of each node."""
    start: Table | None
    """Where the weights of a bias's node begin, for tied trees."""
    by_neuron: bool
    """Whether all trees are equal, so that they are described once."""
    regular: bool
    """Whether the nodes that read inputs come first, and the others read all nodes in order."""
    leaves: int
    """Nodes of a regular tree that read inputs."""
    most: int
    """Nodes of the largest tree."""


def table(values: Ints) -> Table:
    """A formula for these values if there is one.

    >>> table(np.array([3, 5, 7])), table(np.array([1, 4, 9])).values
    (Table(first=3, step=2, values=None), array([1, 4, 9]))
    """
    step = int(values[1] - values[0]) if len(values) > 1 else 0
    if np.array_equal(values, values[0] + step * np.arange(len(values))):
        return Table(int(values[0]), step)
    return Table(values=values)


def tables_of(f: Forest, where: Ints | None = None) -> TreeTables:
    """The tables of a forest; `where` is the place in memory of each input."""
    order = np.lexsort((np.arange(f.nodes), f.neuron_of_node))  # tree by tree
    begin = np.searchsorted(f.neuron_of_node[order], np.arange(f.neurons + 1))
    local = np.empty(f.nodes, dtype=np.int64)
    local[order] = np.arange(f.nodes) - begin[f.neuron_of_node[order]]
    edges = np.concatenate([np.arange(f.offsets[n], f.offsets[n + 1]) for n in order])
    source, is_leaf = f.source[edges].astype(np.int64), f.source[edges] < f.in_features
    fan, counts = f.fan_ins[order], np.diff(begin)
    source[~is_leaf] = local[source[~is_leaf] - f.in_features]
    source[is_leaf] = source[is_leaf] if where is None else np.asarray(where)[source[is_leaf]]
    equal = not np.ptp(counts) and not (fan.reshape(f.neurons, -1) != fan[: counts[0]]).any()
    regular, leaves = False, 0
    if equal:
        leaf, inner = is_leaf.reshape(f.neurons, -1), np.repeat(np.arange(f.nodes) % counts[0], fan)
        leaves = int((f.height_of_node[order][: counts[0]] == 1).sum())
        by_node = np.array_equal(is_leaf, inner < leaves)
        children = source[~is_leaf].reshape(f.neurons, -1) if by_node else np.zeros((1, 1))
        regular = by_node and bool((children == np.arange(children.shape[1])).all()) and not (leaf != leaf[0]).any()
    base = None
    if regular:
        rows = source[is_leaf].reshape(f.neurons, -1)
        by_neuron, shifts = bool((rows - rows[:, :1] == rows[0] - rows[0, 0]).all()), rows[:, 0] - rows[0, 0]
        if by_neuron and shifts.any():
            base = table(shifts) if shifts.min() >= 0 else table(rows[:, 0] - rows[:, 0].min())
            rows = rows - rows[0, 0] + (rows[0, 0] if shifts.min() >= 0 else rows[:, 0].min())
        by_neuron = by_neuron and int(rows[0].min()) >= 0
        read = rows[0] if by_neuron else source[is_leaf]
        base = base if by_neuron else None
    else:
        source[~is_leaf] += f.in_features
        by_neuron, read = False, source
    start = None
    weights: Ints = f.weight_of_edge[edges]
    biases: Ints = order
    bias: Ints = np.arange(f.nodes)
    if f.template is not None:
        weights, biases, bias = np.arange(f.weights), np.arange(f.biases), f.bias_of_node[order]
        begins = np.zeros(f.biases, dtype=np.int64)
        begins[f.bias_of_node] = f.weight_of_edge[f.offsets[:-1]]
        start = table(begins)
    fans = table(fan[: counts[0]] if by_neuron else fan)
    shapes = fans, table(counts), table(bias), start
    return TreeTables(weights, biases, table(read), base, *shapes, by_neuron, regular, leaves, int(counts.max()))
