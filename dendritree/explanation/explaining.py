"""`explain`: contributions to the outputs of a layer, a network, or anything that holds one.

Contributions are measured against a *reference input*: they and the response to the reference, the *baseline*, add up
to the output. A nonlinearity passes them on by its secant slope between reference and input,

    (act(s) - act(s_reference)) / (s - s_reference),        the gradient where the two coincide,

so that on a tree nothing is lost or counted twice: the rescale rule of DeepLIFT (Shrikumar et al., 2017). Everything is
computed in float64 whatever the type of the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ShapeError
from ..layers import DendriticLayer, trace
from ..layers.neuron_layer import index_of
from ..models.chain import ON_MAPS, PASSES, chain_of, run_chain, split_shape
from .contributions import Explanation, ModelExplanation
from .prepared_rows import PreparedRows, prepare_rows

NEAR = 1e-12
"""Sums closer than this coincide: their difference is rounding error, and its quotient is not a slope."""


@overload
def explain(model: DendriticLayer, x: Tensor, reference: float | Tensor | None = None) -> Explanation: ...
@overload
def explain(model: nn.Module, x: Tensor, reference: float | Tensor | None = None) -> Explanation | ModelExplanation: ...
@overload
def explain(model: Any, x: Any, reference: Any = None) -> Any: ...
@torch.no_grad()
def explain(model: Any, x: Any, reference: Any = None) -> Explanation | ModelExplanation:
    """Decompose the outputs of a layer or a model into contributions of inputs, synapses and dendrites, and a baseline.

    The model runs in evaluation mode and is not changed. A model whose contributions would not add up to its output is
    rejected.

    Args:
        model: a `DendriticLayer`; an `nn.Sequential` of dendritic and linear layers, norms, `nn.Flatten`, dropout and
            activations, and of convolutions with average pooling; or a model that is a `Chain` of these, such as
            `MLNClassifier`, `DendriticNetwork`, a dendritic `ConvNetwork`, `DenseNetwork`, `MLP` and `Perceptrons`.
            Subclasses with their own forward and modules with forward hooks are rejected. Or an object that holds a
            network: a fitted `DendriticClassifier` or `DendriticRegressor`, or a table model. These are explained by
            column, in the units of the target or, for classes, in log-odds.
        x: inputs, shape (..., in_features), or (batch, ...) with `nn.Flatten` or convolutions; for an object that holds
            a network, raw rows, as for `predict`.
        reference: the input to compare with: a number, or a tensor that broadcasts to `x`, such as the mean input; 0 by
            default. For an object that holds a network, one row, or as many as `x`; by default the mean training row.

    Example:
        >>> layer = DendriticLayer(16, 2, branching=[4, 2], wiring="partition", activation="tanh")
        >>> parts = explain(layer, torch.randn(5, 16))
        >>> parts.synapses.shape, parts.dendrites.shape, parts.inputs.shape
        (torch.Size([5, 16]), torch.Size([5, 6]), torch.Size([5, 2, 16]))
        >>> parts.check() < 1e-8
        True
    """
    if not isinstance(model, nn.Module):
        return _explain_rows(prepare_rows(model, x, reference))
    steps = chain_of(in_float64(model))
    if not isinstance(x, Tensor) or x.dim() == 0:
        raise ShapeError(f"x must be a tensor of shape (..., in_features): got {x!r:.60}")
    leading, features = split_shape(steps, x)
    if isinstance(steps[0], ON_MAPS) and len(features) > 1:
        steps = [nn.Unflatten(1, features), *steps]  # rows become images
    at = x.double().reshape(leading.numel(), features.numel())  # -1 is ambiguous for an empty batch
    base = expand_reference(0.0 if reference is None else reference, x).reshape(at.shape)
    if isinstance(model, DendriticLayer):
        return explain_layer(steps[0], at, base, leading)  # type: ignore[arg-type]
    return explain_chain(steps, at, base, leading, features)


def _explain_rows(rows: PreparedRows) -> ModelExplanation:
    """The explanation of a network, with its inputs summed per column and outputs in the user's units."""
    steps = chain_of(in_float64(rows.network))
    whole = explain_chain(steps, rows.x, rows.reference, rows.x.shape[:1], rows.x.shape[1:])
    by_column = whole.inputs.new_zeros(*whole.inputs.shape[:-1], len(rows.names))
    by_column.index_add_(-1, index_of(rows.column, by_column), whole.inputs)
    return replace(
        whole,
        output=whole.output * rows.scale + rows.shift,
        baseline=whole.baseline * rows.scale + rows.shift,
        inputs=by_column * rows.scale[:, None],
        effects=tuple(effect * rows.scale[:, None] for effect in whole.effects),
        names=rows.names,
        outputs=rows.outputs,
    )


def expand_reference(reference: Any, x: Tensor) -> Tensor:
    """A reference input in float64, in the shape of x."""
    try:
        return torch.as_tensor(reference, device=x.device).double().expand_as(x)
    except (RuntimeError, TypeError, ValueError):
        got = tuple(reference.shape) if isinstance(reference, Tensor) else repr(reference)
        raise ShapeError(f"reference must be a number or broadcast to shape {tuple(x.shape)}: got {got}") from None


def in_float64(model: nn.Module) -> nn.Module:
    """A copy of a model in evaluation mode that computes in float64."""
    twin = copy.deepcopy(model)
    for module in twin.modules():
        if isinstance(module, nn.RMSNorm) and module.eps is None:  # the default depends on the dtype of the inputs
            module.eps = torch.finfo(next(twin.parameters(), torch.empty(0)).dtype).eps
    return twin.double().eval()


def explain_layer(layer: DendriticLayer, at: Tensor, base: Tensor, leading: torch.Size) -> Explanation:
    """The explanation of a layer in float64, for rows of inputs and of references."""
    forest, weight = layer.forest, layer.edge_weight
    here, there = trace(layer, at), trace(layer, base)
    slopes = secant(layer.activation, here.sums, there.sums)
    roots = index_of(forest.roots, at)
    if not layer.root_activation:
        slopes[:, roots] = 1.0
    change = torch.cat([at - base, here.values - there.values], dim=-1)  # (batch, inputs and nodes)
    # The change of the neuron's output per unit of a dendrite's sum, computed from the root down.
    sensitivity = torch.zeros_like(slopes)
    sensitivity[:, roots] = slopes[:, roots]
    for step in forest.descend():
        edge, child, parent = (index_of(each, at) for each in step)
        sensitivity[:, child] = sensitivity[:, parent] * weight[edge] * slopes[:, child]
    per_unit = sensitivity[:, index_of(forest.node_of_edge, at)] * weight  # (batch, edges)
    contributions = per_unit * change[:, index_of(forest.source, at)]
    synapses = index_of(forest.synapse_edges, at)
    dendrites = here.values - there.values  # of roots; other dendrites contribute through the edges that read them
    inner = np.flatnonzero(forest.source >= forest.in_features)
    dendrites[:, index_of(forest.source[inner] - forest.in_features, at)] = contributions[:, index_of(inner, at)]
    parts = (here.values[:, roots], there.values[:, roots], contributions[:, synapses], dendrites)
    output, baseline, by_synapse, by_dendrite = (part.reshape(*leading, part.shape[-1]) for part in parts)
    multipliers = per_unit[:, synapses].reshape(*leading, forest.synapses)
    return Explanation(output, baseline, by_synapse, by_dendrite, forest, multipliers)


def explain_chain(
    steps: Sequence[nn.Module], x: Tensor, reference: Tensor, leading: torch.Size, features: torch.Size
) -> ModelExplanation:
    """From the last step to the first, compute the change of an output per unit of a step's input."""
    pairs = list(zip(run_chain(steps, x), run_chain(steps, reference), strict=True))
    output, baseline = pairs[-1]
    if output.dim() != 2:
        raise ShapeError(f"a model with convolutions must end in nn.Flatten or rows: got outputs {tuple(output.shape)}")
    outputs = output.shape[-1]
    effect = torch.eye(outputs, dtype=output.dtype, device=output.device).expand(len(output), -1, -1)
    layers, effects = [], []
    for step, (at, base) in zip(reversed(steps), reversed(pairs[:-1]), strict=True):
        if isinstance(step, DendriticLayer):
            layers.append(explain_layer(step, at, base, leading))
            effects.append(effect.reshape(*leading, outputs, effect.shape[-1]))
            effect = _through_trees(layers[-1], at, effect)
        else:
            effect = effect_before(step, at, base, effect)
    at, base = pairs[0]
    inputs = (effect * (at - base).unsqueeze(1)).reshape(*leading, outputs, *features)
    output, baseline = output.reshape(*leading, outputs), baseline.reshape(*leading, outputs)
    return ModelExplanation(output, baseline, inputs, tuple(layers[::-1]), tuple(effects[::-1]))


def effect_before(step: nn.Module, at: Tensor, base: Tensor, effect: Tensor) -> Tensor:
    """The change of an output per unit of a step's input, from that per unit of its output.

    Args:
        step: a step of a chain.
        at, base: its inputs, for the inputs of the model and for the reference; shape (batch, ...).
        effect: shape (batch, outputs, ...).
    """
    if isinstance(step, DendriticLayer):
        return _through_trees(explain_layer(step, at, base, at.shape[:1]), at, effect)
    if isinstance(step, nn.Linear):
        return effect @ step.weight
    if isinstance(step, nn.BatchNorm1d):
        scale = 1.0 if step.weight is None else step.weight
        variance = torch.as_tensor(step.running_var)  # `chain_of` rejects batch norm without one
        return effect * (scale / (variance + step.eps).sqrt())
    if isinstance(step, nn.LayerNorm | nn.RMSNorm):
        return _through_norm(step, at, base, effect)
    if isinstance(step, ON_MAPS):
        return _through_linear(step, at, effect)
    if isinstance(step, nn.Flatten):
        return effect.reshape(*effect.shape[:2], *at.shape[1:])
    return effect if isinstance(step, PASSES) else effect * secant(step, at, base).unsqueeze(1)


def _through_trees(layer: Explanation, at: Tensor, effect: Tensor) -> Tensor:
    """Effects before a dendritic layer, from those after it."""
    forest = layer.forest
    flat = layer.multipliers.reshape(len(at), forest.synapses)
    neuron, source = index_of(forest.neuron_of_synapse, at), index_of(forest.synapse_inputs, at)
    before = at.new_zeros(len(at), effect.shape[1], at.shape[-1])
    for number in range(effect.shape[1]):  # one at a time: outputs times synapses would be the largest tensor by far
        before[:, number].index_add_(1, source, effect[:, number, neuron] * flat)
    return before


def _through_linear(step: nn.Module, at: Tensor, effect: Tensor) -> Tensor:
    """Effects before a step that is linear, from those after it; one output at a time, because maps are large."""
    with torch.enable_grad():
        here = at.detach().requires_grad_()
        after = step(here)
        parts = [torch.autograd.grad(after, here, each, retain_graph=True)[0] for each in effect.unbind(1)]
    return torch.stack(parts, dim=1)


def _through_norm(step: nn.LayerNorm | nn.RMSNorm, at: Tensor, base: Tensor, effect: Tensor) -> Tensor:
    """Effects before a norm over rows, from those after it.

    The norm is a product of its centered input c and of r = 1 / sqrt(mean(c^2) + eps). The change of a product is split
    as by Shapley values, each factor's change times the mean of the other; the changes of c^2 and r by their secants.
    """
    if step.weight is not None:
        effect = effect * step.weight
    centered = isinstance(step, nn.LayerNorm)
    here, there = (rows - rows.mean(-1, keepdim=True) if centered else rows for rows in (at, base))
    size, eps = at.shape[-1], float(step.eps or 0.0)
    root, root_there = ((rows.square().mean(-1, keepdim=True) + eps).sqrt() for rows in (here, there))
    both = here + there
    slope = -1 / (root * root_there * (root + root_there))  # of r against mean(c^2): (r - r') / (m - m')
    pulled = (effect * both.unsqueeze(1)).sum(-1, keepdim=True) / 2  # (batch, outputs, 1)
    before = effect * ((1 / root + 1 / root_there) / 2).unsqueeze(1) + pulled * (slope * both / size).unsqueeze(1)
    return before - before.mean(-1, keepdim=True) if centered else before


def secant(function: Callable[[Tensor], Tensor], at: Tensor, base: Tensor) -> Tensor:
    """Slopes of an elementwise function between two points; its gradient where they coincide.

    >>> secant(torch.relu, torch.tensor([1.0, 2.0, -1.0]), torch.tensor([-1.0, 2.0, -2.0])).tolist()
    [0.5, 1.0, 0.0]
    """
    value, step = function(at.clone()), at - base  # the function may work in place
    rise = value - function(base.clone())
    with torch.enable_grad():
        place = at.detach().clone().requires_grad_()
        again = function(place.clone())
        gradient = torch.autograd.grad(again.sum(), place)[0] if again.requires_grad else torch.zeros_like(at)
    gradient = torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
    near = step.abs() <= NEAR * (1 + at.abs())
    smooth = (rise - gradient * step).abs() <= NEAR * (1 + value.abs())  # not where a step function jumps
    coincide = (step == 0) | (near & smooth)
    return torch.where(coincide, gradient, rise / torch.where(step == 0, torch.ones_like(step), step))
