"""How much every edge of a tree matters.

The *importance* of an edge is how far it moves its dendrite, times how far that moves the output. Without examples,
both follow from the weights: every input moves by 1, and every activation has slope 1. With examples, they are means
over the examples: of how far the edge moves its dendrite away from its value at the reference input, and of the secant
slopes on the way to the output. Removing an edge of importance 0 changes nothing, for any input or for any of the
examples.
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
from ..explanation.explaining import NEAR, effect_before, expand_reference, in_float64, secant
from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer, trace
from ..layers.dendritic import Trace
from ..layers.forest_layer import ForestLayer
from ..models import DendriticNetwork
from ..models.chain import ON_MAPS, chain_of, split_shape
from ..training.threads import torch_threads

Floats = npt.NDArray[np.float64]
AT_ONCE = 1 << 22
"""Edges times examples that are computed at once, in 32 MB."""


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
    neurons: Floats
    """The importance of each neuron: how far it moves the output."""
    followed: Floats | None
    """If neurons can be removed: what the read-out that follows receives from each of them at the reference."""


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
        raise OptionError(f"layer must be a DendriticLayer: got {type(layer).__name__}")
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
@torch_threads(1)  # several would wait for each other on a busy machine
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
            raise OptionError(
                "a model must be pruned with examples=, on which importance is measured, or data=: got neither"
            )
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
    there, at_rest = _run(steps, base)
    trees = {place: step for place, step in enumerate(steps) if isinstance(step, DendriticLayer)}
    moved = {place: np.zeros(step.forest.in_features + step.forest.nodes) for place, step in trees.items()}
    slopes = {place: np.zeros(step.forest.nodes) for place, step in trees.items()}
    effect = {place: np.zeros(step.forest.neurons) for place, step in trees.items()}
    for part in torch.split(x, max(1, AT_ONCE // max(layer.forest.edges for layer in layers))):
        here, at = _run(steps, part)
        effects = _effects(steps, here, there, min(trees))
        for place, step in trees.items():
            figures = _figures(step, here[place], at[place], there[place], at_rest[place])
            of_neurons = effects[place].abs().sum(1)  # of each neuron on all outputs
            for total, each in zip((moved, slopes, effect), (*figures, of_neurons), strict=True):
                total[place] += each.sum(0).cpu().numpy() / len(x)
    # A model of ours that is not a DendriticNetwork could not be built with fewer neurons when it is loaded.
    fixed = any("model_name" in vars(each) and not isinstance(each, DendriticNetwork) for each in model.modules())
    return [
        _measured(layer, step, there[place], moved[place], slopes[place], effect[place],
                  None if fixed else _followed(steps, place, there))
        for layer, (place, step) in zip(layers, trees.items(), strict=True)
    ]  # fmt: skip


def _run(steps: Sequence[nn.Module], x: Tensor) -> tuple[list[Tensor], dict[int, Trace]]:
    """The inputs and the output of every step, and the dendrites of dendritic layers."""
    rows, traces = [x], {}
    for place, step in enumerate(steps):
        if isinstance(step, DendriticLayer):
            traces[place] = trace(step, rows[-1])
            rows.append(traces[place].values[:, step.forest.roots.tolist()])
        else:
            rows.append(step(rows[-1].clone()))  # an activation may work in place
    return rows, traces


def _effects(
    steps: Sequence[nn.Module], here: Sequence[Tensor], there: Sequence[Tensor], first: int
) -> dict[int, Tensor]:
    """The change of each output per unit of a neuron, from the last step to the first dendritic layer."""
    examples, outputs = here[-1].shape
    effect = torch.eye(outputs, dtype=here[-1].dtype, device=here[-1].device).expand(examples, -1, -1)
    effects = {}
    for place in range(len(steps) - 1, first - 1, -1):
        effects[place] = effect
        if place > first:
            effect = effect_before(steps[place], here[place], there[place].expand_as(here[place]), effect)
    return effects


def _figures(layer: DendriticLayer, x: Tensor, at: Trace, start: Tensor, at_rest: Trace) -> tuple[Tensor, Tensor]:
    """How far inputs and dendrites move away from their values at the reference, and the slopes of dendrites."""
    rows, still = torch.cat([x, at.values], dim=-1), torch.cat([start, at_rest.values], dim=-1)
    moved = (rows - still).abs()
    moved[moved <= NEAR * (1 + still.abs())] = 0.0  # the mean of equal numbers may differ by rounding
    slopes = secant(layer.activation, at.sums, at_rest.sums.expand_as(at.sums)).abs()
    if not layer.root_activation:
        slopes[:, layer.forest.roots.tolist()] = 1.0
    return moved, slopes


def following(steps: Sequence[nn.Module], place: int) -> list[nn.Module]:
    """The steps between a dendritic layer and a linear read-out, and the read-out; none if they mix its neurons.

    >>> [type(step).__name__ for step in following([DendriticLayer(4, 2), nn.ReLU(), nn.Linear(2, 1)], 0)]
    ['ReLU', 'Linear']
    """
    found: list[nn.Module] = []
    for step in steps[place + 1 :]:
        found.append(step)
        if isinstance(step, nn.Linear):
            once = all([*steps].count(each) == 1 for each in found if [*each.parameters()])
            return found if once and step.bias is not None else []
        if isinstance(step, (nn.LayerNorm, nn.RMSNorm, nn.PReLU, nn.Flatten, DendriticLayer, *ON_MAPS)):
            return []
    return []


def _followed(steps: Sequence[nn.Module], place: int, rows: Sequence[Tensor]) -> Floats | None:
    found = following(steps, place)
    return rows[place + len(found)][0].cpu().numpy() if found else None


def _measured(
    layer: ForestLayer,
    whole: ForestLayer,
    start: Tensor,
    moved: Floats,
    slopes: Floats,
    effect: Floats,
    followed: Floats | None = None,
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
    neurons = moved[forest.in_features :][forest.roots] * effect
    return Measured(layer, edges, synapses, rows, at.sums[0].cpu().numpy(), neurons, followed)


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
