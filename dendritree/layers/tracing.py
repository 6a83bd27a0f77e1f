"""What every dendrite of a layer does with an input: its sum, and its value after the activation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .base import as_rows
from .dendritic import DendriticLayer


class Trace(NamedTuple):
    """The dendrites of all neurons, in the order of `layer.forest`'s nodes; the neurons are `forest.roots`."""

    sums: Tensor
    """What each dendrite adds up, bias included, shape (..., nodes)."""
    values: Tensor
    """What it passes on: the activation of its sum, shape (..., nodes)."""


@torch.no_grad()
def trace(layer: DendriticLayer, x: Tensor) -> Trace:
    """Follow inputs through the trees, without dropout and without gradients.

    Args:
        layer: whose trees are followed.
        x: inputs, shape (..., in_features), in the type of the weights.

    Example:
        >>> layer = DendriticLayer(4, 1, branching=2)
        >>> x = torch.ones(3, 4)
        >>> trace(layer, x).values.shape  # two dendrites and the root
        torch.Size([3, 3])
        >>> bool((trace(layer, x).values[:, layer.forest.roots.tolist()] - layer(x)).abs().max() < 1e-6)
        True
    """
    forest, weight, bias = layer.forest, layer.edge_weight, layer.node_bias
    flat = as_rows(x, forest.in_features, weight.dtype)
    source, owner = (torch.tensor(index, device=x.device).long() for index in (forest.source, forest.node_of_edge))
    is_root = torch.zeros(forest.nodes, dtype=torch.bool, device=x.device)
    is_root[forest.roots.tolist()] = True
    sums = flat.new_zeros(len(flat), forest.nodes)
    if bias is not None:
        sums += bias
    rows = torch.cat([flat, torch.zeros_like(sums)], dim=-1)  # (batch, inputs and nodes)
    for level in forest.levels:
        edges = slice(int(forest.offsets[level.start]), int(forest.offsets[level.stop]))
        sums.index_add_(1, owner[edges], rows[:, source[edges]] * weight[edges])
        values = layer.activation(sums[:, level])
        if not layer.root_activation:
            values = torch.where(is_root[level], sums[:, level], values)
        rows[:, forest.in_features + level.start : forest.in_features + level.stop] = values
    shape = (*x.shape[:-1], forest.nodes)
    return Trace(sums.reshape(shape), rows[:, forest.in_features :].reshape(shape))
