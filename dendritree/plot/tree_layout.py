"""The positions of a tree's synapses and dendrites in a figure, without drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import check_index, check_one_of
from ..tree import BoolArray, Forest

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FORMS = ("auto", "layered", "radial")
"""`layered` goes from the synapses on the left to the root on the right; `radial` has the root in the middle."""
MOST_LAYERED = 48
"""Maximum number of synapses for which `auto` is layered: more are too close together in a column."""
GAP = 0.7
"""Extra space between the synapses of two dendrites; a synapse takes a space of 1."""


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """The tree of one neuron in the plane; x and y are from 0 to 1 if layered, in a circle of radius 1 if radial."""

    form: str
    edges: Integers
    """The forest's edges that belong to the neuron: those of its synapses and those between dendrites."""
    starts: Floats
    """Where each edge begins: its synapse or the dendrite that it reads. Shape (edges, 2)."""
    ends: Floats
    """Where each edge ends: the dendrite that it belongs to. Shape (edges, 2)."""
    depths: Integers
    """Edges from the start of each edge to the root."""
    reads: Integers
    """What each edge reads: the index of an input, or -1 for a dendrite."""
    nodes: Integers
    """The forest's nodes that belong to the neuron, in the order of a walk from the root."""
    places: Floats
    """The position of each node, shape (nodes, 2)."""

    @property
    def is_synapse(self) -> BoolArray:
        """Whether each edge is a synapse."""
        return self.reads >= 0

    @property
    def depth(self) -> int:
        """Edges from the farthest synapse to the root."""
        return int(self.depths.max())


def lay_out(forest: Forest, neuron: int = 0, form: str = "auto") -> TreeLayout:
    """Lay out the tree of a neuron: synapses in the order of a walk through the tree, dendrites amid their children.

    >>> tree = lay_out(Forest.grow(2, fan_in=4))
    >>> tree.form, tree.nodes.tolist(), tree.places[0].tolist()  # the root, at the right
    ('layered', [2, 0, 1], [1.0, 0.5])
    """
    check_one_of("form", form, FORMS)
    root = int(forest.roots[check_index("neuron", neuron, forest.neurons)])
    nodes, synapses = _walk(forest, root)
    inputs, first, last = forest.in_features, forest.offsets[:-1], forest.offsets[1:] - 1
    depth = np.zeros(forest.nodes, dtype=np.int64)
    for _, child, parent in forest.descend():
        depth[child] = depth[parent] + 1
    rooms = np.zeros(forest.edges)  # where each edge begins, along the row of synapses
    steps = np.ones((len(synapses), 2))
    steps[0], steps[1:, 1] = (0.5, 0), GAP * (np.diff(forest.node_of_edge[synapses]) != 0)
    rooms[synapses] = np.cumsum(steps)[1::2]
    total = float(rooms.max()) + 0.5
    middle = np.zeros(forest.nodes)
    for level, span, _ in forest.ascend():
        is_node = forest.source[span] >= inputs
        rooms[span][is_node] = middle[forest.source[span][is_node] - inputs]
        middle[level] = (rooms[first[level]] + rooms[last[level]]) / 2
    edges = np.concatenate([np.arange(first[node], last[node] + 1) for node in nodes])
    owner = forest.node_of_edge[edges]
    deepest = depth[owner].max() + 1
    is_radial = form == "radial" or (form == "auto" and len(synapses) > MOST_LAYERED)

    def places(along: Floats, depths: Integers) -> Floats:
        if not is_radial:
            return np.stack([1 - depths / deepest, 1 - along / total], axis=1)
        angle, radius = np.pi / 2 - 2 * np.pi * along / (total + GAP), depths / deepest
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    return TreeLayout(
        "radial" if is_radial else "layered",
        edges=edges,
        starts=places(rooms[edges], depth[owner] + 1),
        ends=places(middle[owner], depth[owner]),
        depths=depth[owner] + 1,
        reads=np.where(forest.source[edges] < inputs, forest.source[edges], -1).astype(np.int64),
        nodes=np.array(nodes),
        places=places(middle[nodes], depth[nodes]),
    )


def _walk(forest: Forest, root: int) -> tuple[list[int], list[int]]:
    """The nodes of a tree and the edges of its synapses, in the order of a depth-first walk from the root."""
    nodes: list[int] = []
    synapses: list[int] = []
    pending: list[int] = []

    def enter(node: int) -> None:
        nodes.append(node)
        pending.extend(range(forest.offsets[node + 1] - 1, forest.offsets[node] - 1, -1))  # the first is on top

    enter(root)
    while pending:
        edge = pending.pop()
        row = int(forest.source[edge])
        if row < forest.in_features:
            synapses.append(edge)
        else:
            enter(row - forest.in_features)
    return nodes, synapses
