"""Vectorized PyTorch on stored edges only: any device, any float type, autograd, compile, export.

A `Layout` is a forest prepared for this: every level is a few *groups* of nodes with equal fan-in, so that a group is
one reshape, multiply and sum. Balanced trees need no index at all; where all neurons read the same inputs the leaf
level is a batched matmul.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..tree import Forest, IntArray
from .dropout import silence

__all__ = ["Layout", "dendritic", "make_layout"]


@dataclass(frozen=True)
class Group:
    """Nodes of one level with equal fan-in.

    `reads` picks, from the rows at hand, what the group's edges read; `edges` their weights; `nodes` their biases.
    A slice where they are contiguous (a view, no copy), an index tensor otherwise. If `shared_by` neurons read the
    very same rows, `reads` holds one neuron's share.
    """

    fan_in: int
    reads: slice | Tensor
    edges: slice | Tensor
    nodes: slice | Tensor
    nodes_each: int
    """Nodes of each of the neurons that share; all nodes if none do."""
    shared_by: int


@dataclass(frozen=True)
class Level:
    """Nodes that do not read each other; `mixed` says, per node in group order, which are roots if only some are."""

    groups: tuple[Group, ...]
    roots: bool
    mixed: Tensor | None


@dataclass(frozen=True)
class Layout:
    """A forest in groups, its indices on one device."""

    forest: Forest
    levels: tuple[Level, ...]
    outputs: slice | Tensor
    chained: bool
    """Each level reads the level before it and nothing else, so older rows can be let go."""
    synapses: slice | Tensor
    """The edges that are synapses."""


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
    is_root = np.zeros(forest.nodes, dtype=bool)
    is_root[forest.roots] = True
    levels = []
    for i, level in enumerate(forest.levels):
        fan_ins = forest.fan_ins[level]
        order = np.argsort(-fan_ins, kind="stable")  # larger nodes first
        nodes = order.astype(np.int32) + np.int32(level.start)
        base = first[i] if chained else 0
        groups = tuple(
            _make_group(forest, nodes[fan_ins[order] == fan_in], int(fan_in), position - base, device)
            for fan_in in sorted(set(fan_ins.tolist()), reverse=True)
        )
        rows = forest.in_features + level.start + np.arange(len(nodes))
        position[nodes + forest.in_features] = rows
        roots = is_root[nodes]
        mixed = torch.as_tensor(roots, device=device) if roots.any() and not roots.all() else None
        levels.append(Level(groups, bool(roots.all()), mixed))
    base = forest.in_features + forest.levels[-1].start if chained else 0
    outputs = _select(position[forest.roots + forest.in_features] - base, device)
    return Layout(forest, tuple(levels), outputs, chained, _select(forest.synapse_edges, device))


def _make_group(forest: Forest, nodes: IntArray, fan_in: int, position: np.ndarray, device: torch.device) -> Group:
    edges = (forest.offsets[nodes][:, None] + np.arange(fan_in)).ravel()  # (nodes, fan_in)
    reads = position[forest.source[edges]]
    share = len(reads) // forest.neurons
    shared = len(nodes) % forest.neurons == 0 and bool((reads.reshape(forest.neurons, -1) == reads[:share]).all())
    shared_by = forest.neurons if shared else 1
    return Group(
        fan_in,
        reads=_select(reads[: len(reads) // shared_by], device),
        edges=_select(edges, device),
        nodes=_select(nodes, device),
        nodes_each=len(nodes) // shared_by,
        shared_by=shared_by,
    )


def _select(index: np.ndarray, device: torch.device) -> slice | Tensor:
    """A slice if the index is a run, else an index tensor."""
    start, stop = int(index[0]), int(index[0]) + len(index)
    if np.array_equal(index, np.arange(start, stop)):
        return slice(start, stop)
    return torch.as_tensor(index, dtype=torch.long, device=device)


def _take(rows: Tensor, select: slice | Tensor) -> Tensor:
    """Pick along the last axis; the whole axis is returned as it is."""
    if isinstance(select, slice):
        whole = select.start == 0 and select.stop == rows.shape[-1]
        return rows if whole else rows[..., select]
    return rows.index_select(-1, select)


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
    scale = (
        None
        if synapse_scale is None
        else _edge_scale(synapse_scale.reshape(rows.shape[0], layout.forest.synapses), layout)
    )
    for level in layout.levels:
        sums = [_group_sums(rows, weight, bias, group, scale) for group in level.groups]
        y = sums[0] if len(sums) == 1 else torch.cat(sums, dim=-1)  # (batch, nodes)
        if root_activation or (level.mixed is None and not level.roots):
            y = activation(y)
        elif level.mixed is not None:
            y = torch.where(level.mixed, y, activation(y.clone()))  # it may change what it is given
        if layout.chained:
            rows, scale = y, None  # only the leaf level has synapses
        else:
            rows = torch.cat([rows, y], dim=-1)
    y = _take(rows, layout.outputs)
    return y if x.dim() == 2 else y.reshape(*x.shape[:-1], layout.forest.neurons)


def _edge_scale(synapse_scale: Tensor, layout: Layout) -> Tensor:
    """Dropout factors per edge: those of the synapses, and 1 for edges between dendrites."""
    if layout.chained:
        return synapse_scale  # the synapses are the first edges, and no later level asks
    ones = synapse_scale.new_ones(synapse_scale.shape[0], layout.forest.edges)
    index = layout.synapses
    if isinstance(index, slice):
        index = torch.arange(index.start, index.stop, device=ones.device)
    return ones.index_copy(1, index, synapse_scale)


def _group_sums(rows: Tensor, weight: Tensor, bias: Tensor | None, group: Group, scale: Tensor | None) -> Tensor:
    """Weighted sums plus bias of a group's nodes, shape (batch, nodes)."""
    batch, each = rows.shape[0], (group.nodes_each, group.fan_in)
    values = _take(rows, group.reads).reshape(batch, *each)
    w = _take(weight, group.edges).reshape(group.shared_by, *each)
    if scale is not None:
        factors = _take(scale, group.edges).reshape(batch, group.shared_by, *each)
        y = (silence(values.unsqueeze(1), factors) * w).sum(-1)  # (batch, neurons, nodes)
    elif group.shared_by > 1:
        y = torch.bmm(values.transpose(0, 1), w.permute(1, 2, 0)).permute(1, 2, 0)  # (batch, neurons, nodes)
    else:
        y = (values * w).sum(-1)  # (batch, nodes)
    y = y if y.dim() == 2 else y.reshape(batch, group.shared_by * group.nodes_each)
    return y if bias is None else y + _take(bias, group.nodes)
