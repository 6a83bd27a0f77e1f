"""Vectorized PyTorch on stored edges only: any device, any float type, autograd, compile, export.

A `Layout` is a forest prepared for this: every level is a few *groups* of nodes with equal fan-in, so that a group is
one reshape, multiply and sum. Balanced trees need no index at all; where all neurons read the same inputs the leaf
level is a batched matmul. A level of many fan-ins, as pruning leaves it, is filled up with zeros to a few.

This is what GPUs run: indices are made beforehand and not with every call, nothing waits for the device, and how many
operations there are depends on the levels of the trees, not on how many trees there are and not on the batch.
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
"""Which of many: a slice where they are contiguous (a view, no copy), an index tensor otherwise."""

MOST_FAN_INS = 4
"""Of a level with more different fan-ins than that, each group takes those down to half its largest."""


@dataclass(frozen=True)
class Group:
    """Nodes of one level with equal fan-in.

    If `shared_by` neurons read the very same rows, one neuron's share of them is read.
    """

    fan_in: int
    nodes_each: int
    """Nodes of each of the neurons that share; all nodes if none do."""
    shared_by: int
    synapses: bool
    """Whether any edge is one, so that dropout may silence it."""

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
    """Nodes that do not read each other; `mixed` says, per node in group order, which are roots if only some are."""

    groups: tuple[Group, ...]
    reads: tuple[Selection, ...]
    """What the edges read of the rows at hand: one selection for all groups, or one for each."""
    filled: bool
    """Missing edges of smaller nodes have the weight 0 and read a 0, each of which stands after all others."""
    roots: bool
    mixed: Tensor | None


@dataclass(frozen=True)
class Layout:
    """A forest in groups, its indices on one device."""

    forest: Forest
    levels: tuple[Level, ...]
    edges: Selection
    """The weights, in the order of the groups."""
    nodes: Selection
    """The biases, in the order of the groups."""
    factors: Selection
    """The factors of dropout, in the order of the groups that have synapses; other edges have the last one."""
    outputs: Selection
    chained: bool
    """Each level reads the level before it and nothing else, so older rows can be let go."""

    @property
    def filled(self) -> bool:
        """Whether any level is."""
        return any(level.filled for level in self.levels)

    def groups(self) -> Iterator[Group]:
        """Those of all levels."""
        for level in self.levels:
            yield from level.groups


def make_layout(forest: Forest, device: torch.device | str = "cpu") -> Layout:
    """Group a forest, with its indices on a device.

    >>> make_layout(Forest.grow(2, fan_in=4)).chained
    True
    """
    device = torch.device(device)
    first = [0, *(forest.in_features + level.start for level in forest.levels)]  # first row a chained level reads
    chained = bool(forest.roots.min() >= forest.levels[-1].start) and all(
        forest.source[forest.offsets[level.start] : forest.offsets[level.stop]].min() >= first[i]
        for i, level in enumerate(forest.levels)
    )
    position = np.arange(forest.in_features + forest.nodes)  # where each row stands among the rows at hand
    factor_of_edge = np.full(forest.edges + 1, forest.synapses)  # one more for edges that are missing
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
    """The largest and the smallest fan-in of each group, given all that a level has, largest first.

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
    """How many neurons read the same rows: all of them, or each its own."""
    share = len(reads) // forest.neurons
    shared = nodes % forest.neurons == 0 and bool((reads.reshape(forest.neurons, -1) == reads[:share]).all())
    return forest.neurons if shared else 1


def _select_reads(reads: list[np.ndarray], device: torch.device) -> tuple[Selection, ...]:
    """One selection for all groups, unless a view would do for one of them and not for all."""
    whole, each = _select(np.concatenate(reads), device), tuple(_select(rows, device) for rows in reads)
    return each if isinstance(whole, Tensor) and any(isinstance(rows, slice) for rows in each) else (whole,)


def _select(index: np.ndarray, device: torch.device) -> Selection:
    """A slice if the index is a run, else an index tensor."""
    start, stop = int(index[0]), int(index[0]) + len(index)
    if np.array_equal(index, np.arange(start, stop)):
        return slice(start, stop)
    return torch.as_tensor(index, dtype=torch.long, device=device)


def _take(rows: Tensor, select: Selection) -> Tensor:
    """Pick along the last axis; the whole axis is returned as it is."""
    if isinstance(select, slice):
        length = select.stop - select.start
        return rows if length == rows.shape[-1] else rows.narrow(-1, select.start, length)
    return rows.index_select(-1, select)


def _parts(rows: Tensor, select: Selection, sizes: list[int]) -> tuple[Tensor, ...]:
    """Pick along the last axis, in parts of these sizes. All at once, so that the way back is one operation too."""
    rows = _take(rows, select)
    return (rows,) if len(sizes) == 1 else rows.split_with_sizes(sizes, dim=-1)


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
    # A reshape that changes nothing is left out: it would stand in every exported graph.
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
            y = torch.where(level.mixed, y, activation(y.clone()))  # it may change what it is given
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
