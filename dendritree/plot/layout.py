"""Where the synapses and dendrites of a tree stand in a picture: positions, no drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OptionError, check_int, check_one_of
from ..tree import Forest

__all__ = ["FORMS", "MOST_LAYERED", "TreeLayout", "lay_out"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FORMS = ("auto", "layered", "radial")
"""`layered` flows from the synapses at the left to the root at the right; `radial` has the root in the middle."""
MOST_LAYERED = 48
"""Synapses up to which `auto` is layered: more than that are too close together in a column."""
GAP = 0.7
"""Extra room between the synapses of two dendrites, in rooms of a synapse."""


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """The tree of one neuron in the plane; x and y from 0 to 1 if layered, within a circle of radius 1 if radial."""

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
    """What each edge reads: the number of an input, or -1 for a dendrite."""
    nodes: Integers
    """The forest's nodes that belong to the neuron, the root first."""
    places: Floats
    """Where each node stands, shape (nodes, 2)."""

    @property
    def is_synapse(self) -> npt.NDArray[np.bool_]:
        """Whether each edge is a synapse."""
        return self.reads >= 0

    @property
    def depth(self) -> int:
        """Edges from the farthest synapse to the root."""
        return int(self.depths.max())

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, ready for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def lay_out(forest: Forest, neuron: int = 0, form: str = "auto") -> TreeLayout:
    """Place the tree of a neuron: synapses in the order of a walk through the tree, dendrites amid their children.

    >>> tree = lay_out(Forest.grow(2, fan_in=4))
    >>> tree.form, tree.nodes.tolist(), tree.places[0].tolist()  # the root, at the right
    ('layered', [2, 0, 1], [1.0, 0.5])
    """
    check_one_of("form", form, FORMS)
    if check_int("neuron", neuron, least=0) >= forest.neurons:
        raise OptionError(f"neuron must be one of 0 ... {forest.neurons - 1}: got {neuron}")
    inputs, offsets = forest.in_features, forest.offsets
    nodes = [int(forest.roots[neuron])]
    edges: list[int] = []
    depth_of_edge: list[int] = []
    parents: list[int] = []
    pending, depth = [(nodes[0], 1)], {nodes[0]: 0}
    while pending:  # depth first, so that edges come in the order of a walk
        node, below = pending.pop()
        for edge in range(offsets[node], offsets[node + 1]):
            edges.append(edge)
            depth_of_edge.append(below)
            parents.append(node)
        children = [int(row) - inputs for row in forest.source[offsets[node] : offsets[node + 1]] if row >= inputs]
        for child in reversed(children):
            depth[child] = below
            pending.append((child, below + 1))
        nodes += children
    slots = _slots(forest, nodes[0])
    total = slots.pop("total")
    reads = forest.source[edges].astype(np.int64)
    deepest = max(depth_of_edge)
    is_radial = form == "radial" or (form == "auto" and int((reads < inputs).sum()) > MOST_LAYERED)

    def place(slot: float, level: int) -> tuple[float, float]:
        if not is_radial:
            return 1 - level / deepest, 1 - slot / total
        angle, radius = np.pi / 2 - 2 * np.pi * slot / (total + GAP), level / deepest
        return float(radius * np.cos(angle)), float(radius * np.sin(angle))

    at = {node: place(slots["node", node], depth[node]) for node in nodes}
    starts = [
        place(slots["edge", edge], level) if row < inputs else at[int(row) - inputs]
        for edge, level, row in zip(edges, depth_of_edge, reads, strict=True)
    ]
    return TreeLayout(
        "radial" if is_radial else "layered",
        np.array(edges),
        np.array(starts),
        np.array([at[parent] for parent in parents]),
        np.array(depth_of_edge),
        np.where(reads < inputs, reads, -1),
        np.array(nodes),
        np.array([at[node] for node in nodes]),
    )


def _slots(forest: Forest, root: int) -> dict[Any, float]:
    """Rooms along the leaves: of each synapse (by edge) and each node (amid its children), and how many in all."""
    inputs, offsets = forest.in_features, forest.offsets
    slots: dict[Any, float] = {}
    position, owner = 0.5, root
    pending: list[tuple[int, int]] = [(root, int(offsets[root]))]  # a node, and the next of its edges
    spans: dict[int, list[float]] = {root: []}
    while pending:
        node, edge = pending.pop()
        if edge == offsets[node + 1]:
            slots["node", node] = (spans[node][0] + spans[node][-1]) / 2
            if pending:
                spans[pending[-1][0]].append(slots["node", node])
            continue
        pending.append((node, edge + 1))
        row = int(forest.source[edge])
        if row >= inputs:
            spans[row - inputs] = []
            pending.append((row - inputs, int(offsets[row - inputs])))
            continue
        if node != owner and spans[owner]:
            position += GAP
        owner = node
        slots["edge", edge] = position
        spans[node].append(position)
        position += 1
    slots["total"] = position - 0.5
    return slots
