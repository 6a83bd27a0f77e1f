"""Vectorized PyTorch on stored edges only: any device, any float type, autograd, compile, export.

A `Layout` is a forest prepared for this: every level is split into a few *groups* of nodes with equal fan-in, so that a
group is one reshape, multiply and sum. Balanced trees need no index at all; where all neurons read the same inputs, the
leaf level is a batched matmul. In a level with many different fan-ins, such as pruning leaves behind, nodes are padded
with zeros to a few distinct fan-ins.

GPUs run this backend: indices are computed in advance and not on every call, nothing synchronizes with the device, and
the number of operations depends on the levels of the trees, not on the number of trees or the batch size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..tree import Forest
from .dropout import silence

__all__ = ["Layout", "dendritic", "make_layout"]

Selection: TypeAlias = slice | Tensor
"""A selection of rows or values: a slice if they are contiguous (a view, no copy), an index tensor otherwise."""

MOST_FAN_INS = 4
"""A level with more distinct fan-ins than this is padded: each group takes fan-ins down to half of its largest."""


@dataclass(frozen=True)
class Group:
    """Nodes of one level with equal fan-in.

    If `shared_by` neurons read exactly the same rows, these rows are read once.
    """

    fan_in: int
    nodes_each: int
    """Nodes of each neuron that shares its rows; all nodes if no rows are shared."""
    shared_by: int
    synapses: bool
    """Whether any edge is a synapse, which dropout may silence."""

    @property
    def reads(self) -> int:
        """How many rows are read."""
        return self.nodes_each * self.fan_in

    @property
    def nodes(self) -> int:
        """Nodes of all neurons."""
        return self.shared_by * self.nodes_each

    @property
    def edges(self) -> int:
        """Edges of all neurons."""
        return self.shared_by * self.reads


@dataclass(frozen=True)
class Level:
    """Nodes that do not read each other. If only some are roots, `mixed` marks these, per node in group order."""

    groups: tuple[Group, ...]
    reads: tuple[Selection, ...]
    """The available rows that the edges read: one selection for all groups, or one per group."""
    filled: bool
    """Whether smaller nodes are padded: missing edges have weight 0 and read a 0, both stored after all others."""
    roots: bool
    mixed: Tensor | None


@dataclass(frozen=True)
class Layout:
    """A forest split into groups, with its indices on one device."""

    forest: Forest
    levels: tuple[Level, ...]
    edges: Selection
    """The weights, in the order of the groups."""
    nodes: Selection
    """The biases, in the order of the groups."""
    factors: Selection
    """The dropout factors, in the order of the groups that have synapses; other edges use the last factor."""
    outputs: Selection
    chained: bool
    """Whether each level reads only the level before it, so that older rows can be freed."""

    @property
    def filled(self) -> bool:
        """Whether any level is padded."""
        return any(level.filled for level in self.levels)

    def groups(self) -> Iterator[Group]:
        """The groups of all levels."""
        for level in self.levels:
            yield from level.groups


def make_layout(forest: Forest, device: torch.device | str = "cpu") -> Layout:
    """Split a forest into groups, with the indices on a device.

    >>> make_layout(Forest.grow(2, fan_in=4)).chained
    True
    """
    device = torch.device(device)
    first = [0, *(forest.in_features + level.start for level in forest.levels)]  # first row a chained level reads
    chained = bool(forest.roots.min() >= forest.levels[-1].start) and all(
        forest.source[forest.offsets[level.start] : forest.offsets[level.stop]].min() >= first[i]
        for i, level in enumerate(forest.levels)
    )
    position = np.arange(forest.in_features + forest.nodes)  # where each row is among the available rows
    factor_of_edge = np.full(forest.edges + 1, forest.synapses)  # one more for missing edges
    factor_of_edge[forest.synapse_edges] = np.arange(forest.synapses)
    is_root = np.zeros(forest.nodes, dtype=bool)
    is_root[forest.roots] = True
    levels, all_edges, all_nodes, all_factors = [], [], [], []
    for i, level in enumerate(forest.levels):
        fan_ins = forest.fan_ins[level]
        ranges = _fan_in_ranges(sorted(set(fan_ins.tolist()), reverse=True))
        group_of = np.searchsorted([-least for _, least in ranges], -fan_ins)  # larger nodes first
        base = first[i] if chained else 0
        groups, reads = [], []
        for g, (most, _) in enumerate(ranges):
            nodes = np.flatnonzero(group_of == g) + level.start
            there = np.arange(most) < forest.fan_ins[nodes][:, None]  # (nodes, fan_in)
            edges = np.where(there, forest.offsets[nodes][:, None] + np.arange(most), forest.edges).ravel()
            rows = position[forest.source[np.minimum(edges, forest.edges - 1)]]
            rows = np.where(there.ravel(), rows, forest.in_features + level.start) - base
            factors = factor_of_edge[edges]
            synapses, shared_by = bool((factors < forest.synapses).any()), _shared_by(rows, len(nodes), forest)
            groups.append(Group(most, len(nodes) // shared_by, shared_by, synapses))
            reads.append(rows[: len(rows) // shared_by])
            all_edges.append(edges)
            all_nodes.append(nodes)
            if synapses:
                all_factors.append(factors)
        nodes = np.concatenate(all_nodes[-len(groups) :])
        position[nodes + forest.in_features] = forest.in_features + level.start + np.arange(len(nodes))
        roots = is_root[nodes]
        mixed = torch.as_tensor(roots, device=device) if roots.any() and not roots.all() else None
        filled = any(most > least for most, least in ranges)
        levels.append(Level(tuple(groups), _select_reads(reads, device), filled, bool(roots.all()), mixed))
    base = forest.in_features + forest.levels[-1].start if chained else 0
    return Layout(
        forest,
        tuple(levels),
        edges=_select(np.concatenate(all_edges), device),
        nodes=_select(np.concatenate(all_nodes), device),
        factors=_select(np.concatenate(all_factors), device),
        outputs=_select(position[forest.roots + forest.in_features] - base, device),
        chained=chained,
    )


def _fan_in_ranges(fan_ins: list[int]) -> list[tuple[int, int]]:
    """The largest and smallest fan-in of each group, given the distinct fan-ins of a level, largest first.

    >>> _fan_in_ranges([5, 2]), _fan_in_ranges([9, 8, 7, 4, 3, 1])
    ([(5, 5), (2, 2)], [(9, 7), (4, 3), (1, 1)])
    """
    if len(fan_ins) <= MOST_FAN_INS:
        return [(fan_in, fan_in) for fan_in in fan_ins]
    ranges: list[tuple[int, int]] = []
    for fan_in in fan_ins:
        if ranges and 2 * fan_in >= ranges[-1][0]:
            ranges[-1] = (ranges[-1][0], fan_in)
        else:
            ranges.append((fan_in, fan_in))
    return ranges


def _shared_by(reads: np.ndarray, nodes: int, forest: Forest) -> int:
    """How many neurons read the same rows: all of them, or 1 if each reads its own."""
    share = len(reads) // forest.neurons
    shared = nodes % forest.neurons == 0 and bool((reads.reshape(forest.neurons, -1) == reads[:share]).all())
    return forest.neurons if shared else 1


def _select_reads(reads: list[np.ndarray], device: torch.device) -> tuple[Selection, ...]:
    """One selection for all groups, unless some group can be a view and all of them together cannot."""
    whole, each = _select(np.concatenate(reads), device), tuple(_select(rows, device) for rows in reads)
    return each if isinstance(whole, Tensor) and any(isinstance(rows, slice) for rows in each) else (whole,)


def _select(index: np.ndarray, device: torch.device) -> Selection:
    """A slice if the index is a run, else an index tensor."""
    start, stop = int(index[0]), int(index[0]) + len(index)
    if np.array_equal(index, np.arange(start, stop)):
        return slice(start, stop)
    return torch.as_tensor(index, dtype=torch.long, device=device)


def _take(rows: Tensor, select: Selection) -> Tensor:
    """Select along the last axis; a selection of the whole axis returns the tensor unchanged."""
    if isinstance(select, slice):
        length = select.stop - select.start
        return rows if length == rows.shape[-1] else rows.narrow(-1, select.start, length)
    return rows.index_select(-1, select)


def _parts(rows: Tensor, select: Selection, sizes: list[int]) -> tuple[Tensor, ...]:
    """Select along the last axis, in parts of these sizes: in one operation, so that the backward pass is one too."""
    rows = _take(rows, select)
    return (rows,) if len(sizes) == 1 else torch.split(rows, sizes, dim=-1)


def dendritic(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    layout: Layout,
    activation: Callable[[Tensor], Tensor],
    root_activation: bool = True,
    synapse_scale: Tensor | None = None,
) -> Tensor:
    """The outputs of all neurons, shape (..., neurons): `reference.dendritic` on stored edges."""
    # A reshape that changes nothing is skipped: it would appear in every exported graph.
    rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])  # (batch, in_features)
    weights = iter(
        _parts(F.pad(weight, (0, 1)) if layout.filled else weight, layout.edges, [g.edges for g in layout.groups()])
    )
    biases = None if bias is None else iter(_parts(bias, layout.nodes, [g.nodes for g in layout.groups()]))
    factors = None if synapse_scale is None else iter(_factors(synapse_scale, rows.shape[0], layout))
    for level in layout.levels:
        at_hand = F.pad(rows, (0, 1)) if level.filled else rows
        if len(level.reads) == 1:
            reads = _parts(at_hand, level.reads[0], [group.reads for group in level.groups])
        else:
            reads = tuple(_take(at_hand, select) for select in level.reads)
        sums = [
            _group_sums(
                values,
                next(weights),
                None if biases is None else next(biases),
                group,
                next(factors) if factors is not None and group.synapses else None,
            )
            for values, group in zip(reads, level.groups, strict=True)
        ]
        y = sums[0] if len(sums) == 1 else torch.cat(sums, dim=-1)  # (batch, nodes)
        if root_activation or (level.mixed is None and not level.roots):
            y = activation(y)
        elif level.mixed is not None:
            y = torch.where(level.mixed, y, activation(y.clone()))  # the activation may work in place
        rows = y if layout.chained else torch.cat([rows, y], dim=-1)
    y = _take(rows, layout.outputs)
    return y if x.dim() == 2 else y.reshape(*x.shape[:-1], layout.forest.neurons)


def _factors(synapse_scale: Tensor, batch: int, layout: Layout) -> tuple[Tensor, ...]:
    """Dropout factors of each group that has synapses, 1 for its other edges."""
    scale = synapse_scale.reshape(batch, layout.forest.synapses)
    if layout.filled or not layout.chained:
        scale = F.pad(scale, (0, 1), value=1.0)
    return _parts(scale, layout.factors, [group.edges for group in layout.groups() if group.synapses])


def _group_sums(values: Tensor, weight: Tensor, bias: Tensor | None, group: Group, scale: Tensor | None) -> Tensor:
    """Weighted sums plus bias of a group's nodes, shape (batch, nodes)."""
    batch, each = values.shape[0], (group.nodes_each, group.fan_in)
    values, w = values.reshape(batch, *each), weight.reshape(group.shared_by, *each)
    if scale is not None:
        factors = scale.reshape(batch, group.shared_by, *each)
        y = (silence(values.unsqueeze(1), factors) * w).sum(-1)  # (batch, neurons, nodes)
    elif group.shared_by > 1:
        y = torch.bmm(values.transpose(0, 1), w.permute(1, 2, 0)).permute(1, 2, 0)  # (batch, neurons, nodes)
    else:
        y = (values * w).sum(-1)  # (batch, nodes)
    y = y if y.dim() == 2 else y.reshape(batch, group.nodes)
    return y if bias is None else y + bias
