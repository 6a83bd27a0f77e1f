"""How much every edge of a tree matters.

The *importance* of an edge is how far it moves its dendrite, times how far that moves the output. Without examples both
follow from the weights: every input moves by 1, every activation has slope 1. With examples they are means over these:
of how far the edge moves its dendrite away from its value at the reference input, and of the secant slopes on the way
to the output. Removing an edge of importance 0 changes nothing: for any input, or for any of the examples.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError
from ..explanation.explaining import NEAR, expand_reference, explain_chain, in_float64, secant
from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer, trace
from ..layers.forest_layer import ForestLayer
from ..models.chain import chain_of, run_chain, split_shape

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """A layer, the importance of its edges, and its response to the reference input."""

    layer: ForestLayer
    edges: Floats
    """The importance of each edge."""
    synapses: Floats
    """The least importance on the path from each synapse to its root: a branch is removed with everything on it."""
    rows: Floats
    """Values of inputs and dendrites at the reference."""
    sums: Floats
    """The sum of each dendrite, before its activation, at the reference."""


def importances(
    layer: DendriticLayer, examples: Tensor | None = None, reference: float | Tensor | None = None
) -> Tensor:
    """The importance of each edge of a layer, shape (edges,), by which `prune` selects. Arguments as in `prune`.

    >>> layer = DendriticLayer(4, 1, branching=2)
    >>> _ = layer.weight.data.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0, 0.5, -2.0]))
    >>> importances(layer).tolist()
    [0.5, 1.0, 6.0, 8.0, 1.5, 14.0]
    """
    if not isinstance(layer, DendriticLayer):
        raise OptionError(f"importances must be those of a DendriticLayer: got {type(layer).__name__}")
    return torch.from_numpy(measure(layer, examples, reference)[0].edges)


def trees_of(model: nn.Module) -> list[ForestLayer]:
    """The layers of a model that are pruned; a convolution is pruned by itself.

    >>> len(trees_of(nn.Sequential(DendriticLayer(4, 2), nn.Linear(2, 1))))
    1
    """
    if isinstance(model, DendriticConv1d | DendriticConv2d):
        return [model]
    return [step for step in chain_of(model) if isinstance(step, DendriticLayer)]


@torch.no_grad()
def measure(model: nn.Module, examples: Tensor | None, reference: float | Tensor | None) -> list[Measured]:
    """Every dendritic layer of a model, measured."""
    layers = trees_of(model)
    if not layers:
        raise OptionError(
            "a model to be pruned must have layers of dendritic trees; convolutions are pruned one at a time: got "
            f"{type(model).__name__}"
        )
    if len(set(layers)) < len(layers):
        raise OptionError(f"a model to be pruned must use each dendritic layer once: {type(model).__name__} does not")
    if examples is None:
        if not isinstance(model, ForestLayer):
            raise OptionError("a model must be pruned with examples, which measure its synapses: got none")
        whole = copy.deepcopy(model).double().eval()
        row = model.weight.new_zeros(1, model.forest.in_features)
        start = _reference(0.0 if reference is None else reference, row)
        ones = np.ones(whole.forest.nodes), np.ones(whole.forest.neurons)
        return [_measured(model, whole, start, _moved_at_most(whole), *ones)]
    if isinstance(model, DendriticConv1d | DendriticConv2d):
        raise OptionError("a convolution is pruned by its weights, without examples: got examples")
    steps = chain_of(in_float64(model))
    fits = isinstance(examples, Tensor) and examples.dim() >= 2 and len(examples)
    if not fits or len(split_shape(steps, examples)[0]) != 1:
        got = f"shape {tuple(examples.shape)}" if isinstance(examples, Tensor) else repr(examples)
        raise ShapeError(f"examples must be a tensor of shape (n, in_features): got {got}")
    x = examples.to(layers[0].weight.device).double().flatten(1)
    base = _reference(x.mean(0) if reference is None else reference, x[:1])
    effects: Sequence[Tensor] = [torch.ones(1, 1, layers[0].out_features)]
    if not isinstance(model, DendriticLayer):
        effects = explain_chain(steps, x, base.expand_as(x), x.shape[:1], x.shape[1:]).effects
    measured: list[Measured] = []
    for step, here, there in zip(steps, run_chain(steps, x), run_chain(steps, base), strict=False):
        if not isinstance(step, DendriticLayer):
            continue
        at, at_rest = trace(step, here), trace(step, there)
        slopes = secant(step.activation, at.sums, at_rest.sums.expand_as(at.sums)).abs().mean(0).cpu().numpy()
        if not step.root_activation:
            slopes[step.forest.roots] = 1.0
        rows, still = torch.cat([here, at.values], dim=-1), torch.cat([there, at_rest.values], dim=-1)
        away = (rows - still).abs()
        away[away <= NEAR * (1 + still.abs())] = 0.0  # the mean of equal numbers may differ by rounding
        moved = away.mean(0).cpu().numpy()
        effect = effects[len(measured)].abs().sum(1).mean(0).cpu().numpy()  # of each neuron on all outputs
        measured.append(_measured(layers[len(measured)], step, there, moved, slopes, effect))
    return measured


def _measured(
    layer: ForestLayer, whole: ForestLayer, start: Tensor, moved: Floats, slopes: Floats, effect: Floats
) -> Measured:
    """Importances from the movement of rows, slopes of dendrites and effects of neurons, from the roots down."""
    forest, weight = layer.forest, whole.edge_weight.abs().cpu().numpy()
    drive = weight * moved[forest.source]
    factor, least = np.zeros(forest.nodes), np.full(forest.nodes, np.inf)
    factor[forest.roots] = slopes[forest.roots] * effect
    for edge, child, parent in forest.descend():
        factor[child] = factor[parent] * weight[edge] * slopes[child]
        least[child] = np.minimum(least[parent], factor[parent] * drive[edge])
    edges = factor[forest.node_of_edge] * drive
    synapses = np.minimum(edges, least[forest.node_of_edge])[forest.synapse_edges]
    if forest.template is not None:  # a shared weight matters wherever it is used
        weight_of_synapse = forest.weight_of_edge[forest.synapse_edges]
        synapses = np.bincount(weight_of_synapse, synapses)[weight_of_synapse]
    at = trace(whole, start)
    rows = np.concatenate([start[0].cpu().numpy(), at.values[0].cpu().numpy()])
    return Measured(layer, edges, synapses, rows, at.sums[0].cpu().numpy())


def _reference(reference: Any, row: Tensor) -> Tensor:
    is_image = isinstance(reference, Tensor) and reference.numel() == row.numel()
    return expand_reference(reference.flatten() if is_image else reference, row)


def _moved_at_most(layer: ForestLayer) -> Floats:
    """How far inputs and dendrites move if every input moves by 1 and all effects add up."""
    forest, weight = layer.forest, layer.edge_weight.abs().cpu().numpy()
    rows = np.ones(forest.in_features + forest.nodes)
    for level, edges, begin in forest.ascend():
        rows[forest.in_features :][level] = np.add.reduceat(weight[edges] * rows[forest.source[edges]], begin)
    return rows
