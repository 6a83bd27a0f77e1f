"""The definition: the paper's masked dense matrices, one line per equation.

    y = f_d ( ... f_2 ( f_1 (x)))        f_i(z) = act((W_i * M_i) z + b_i)

`x` is first repeated so that every synapse has its own row, as the authors did. This is slow and large on purpose
(69.9 million stored weights for ten neurons of 1024 inputs and b = 2); tests compare every other backend with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..tree import Forest
from .dropout import silence

__all__ = ["MaskedLevel", "dendritic", "masked_levels"]


class MaskedLevel(NamedTuple):
    """One f_i: dense weights and mask of shape (nodes, pending rows), bias of shape (nodes,)."""

    weight: Tensor
    mask: Tensor
    bias: Tensor | None
    carried: Tensor
    """Pending rows that a later level reads: none in a balanced tree."""


def masked_levels(weight: Tensor, bias: Tensor | None, forest: Forest) -> list[MaskedLevel]:
    """Spread the edges of a forest over the dense matrices W_i and masks M_i of the paper.

    The columns of W_i are the rows not yet read by an earlier level: for balanced trees the nodes of level i - 1.
    """
    synapse_row = np.cumsum(forest.source < forest.in_features) - 1  # every synapse has its own row
    row = np.where(
        forest.source < forest.in_features, synapse_row, forest.source - forest.in_features + forest.synapses
    )
    pending, levels = np.arange(forest.synapses), []
    for level in forest.levels:
        edges = slice(forest.offsets[level.start], forest.offsets[level.stop])
        column = np.searchsorted(pending, row[edges])
        at = torch.as_tensor(forest.node_of_edge[edges] - level.start).long(), torch.as_tensor(column)
        at = at[0].to(weight.device), at[1].to(weight.device)
        dense = weight.new_zeros(level.stop - level.start, len(pending))
        carried = np.setdiff1d(np.arange(len(pending)), column)
        levels.append(
            MaskedLevel(
                weight=dense.index_put(at, weight[edges]),
                mask=dense.index_put(at, weight.new_ones(())),
                bias=None if bias is None else bias[level],
                carried=torch.as_tensor(carried, device=weight.device),
            )
        )
        nodes = np.arange(level.start, level.stop) + forest.synapses
        pending = np.concatenate([pending[carried], nodes])
    return levels


def dendritic(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    forest: Forest,
    activation: Callable[[Tensor], Tensor],
    root_activation: bool = True,
    synapse_scale: Tensor | None = None,
) -> Tensor:
    """The outputs of all neurons, shape (..., neurons), from inputs of shape (..., in_features).

    `synapse_scale`, shape (..., synapses), multiplies what each synapse reads: the dropout mask, 0 or 1 / (1 - p).
    """
    wiring = torch.as_tensor(forest.synapse_inputs, device=x.device).long()
    is_root = torch.zeros(forest.nodes, dtype=torch.bool)
    is_root[forest.roots.tolist()] = True
    z = x[..., wiring]  # (..., synapses)
    if synapse_scale is not None:
        z = silence(z, synapse_scale)
    for level, (w, mask, b, carried) in zip(forest.levels, masked_levels(weight, bias, forest), strict=True):
        y = z @ (w * mask).T  # (..., nodes)
        y = y if b is None else y + b
        keep_linear = is_root[level].to(x.device) & (not root_activation)
        y = torch.where(keep_linear, y, activation(y.clone()))  # the activation may work in place
        z = torch.cat([z[..., carried], y], dim=-1)
    # Roots of shallow trees are carried to the end, so z holds all roots, in the order of their nodes.
    order = np.argsort(np.argsort(forest.roots))
    return z[..., torch.as_tensor(order, device=x.device)]
