"""How much every input, synapse and dendrite contributed to an output.

Contributions are measured against a *reference input*: they and the response to the reference, the *baseline*, add up
to the output. A nonlinearity passes them on by its secant slope between reference and input,

    (act(s) - act(s_reference)) / (s - s_reference),        the gradient where the two coincide,

so that on a tree nothing is lost or counted twice: the rescale rule of DeepLIFT (Shrikumar et al., 2017). Everything is
computed in float64 whatever the type of the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import torch
from torch import Tensor, nn

from .errors import DendritreeError, OptionError, ShapeError, check_int, check_module
from .layers import DendriticLayer, trace
from .layers.linear import BatchNorm
from .models.chain import chain_of, run_chain
from .tree import Forest

TOLERANCE = 1e-8
"""What contributions and baseline may miss the output by."""
NEAR = 1e-12
"""Sums closer than that coincide: their difference is rounding, and a quotient of roundings is no slope."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """The outputs of a layer, taken apart. A synapse or dendrite belongs to one neuron, and contributes to that one."""

    output: Tensor
    """What the neurons answer, shape (..., neurons)."""
    baseline: Tensor
    """What they answer to the reference input, shape (..., neurons)."""
    synapses: Tensor
    """The contribution of each synapse to its neuron, in edge order, shape (..., synapses)."""
    dendrites: Tensor
    """The contribution of each dendrite to its neuron: that of all synapses above it. Shape (..., nodes); a root
    contributes all that its output differs from the baseline."""
    forest: Forest = field(repr=False)
    multipliers: Tensor = field(repr=False)
    """What a neuron's answer changes by for each unit of what a synapse reads, shape (..., synapses)."""

    @property
    def inputs(self) -> Tensor:
        """The contribution of each input to each neuron, shape (..., neurons, in_features)."""
        return _by_neuron_and_input(self.synapses, self.forest)

    def check(self, tolerance: float = TOLERANCE) -> float:
        """The largest difference between an output and the sum of its parts; raises if it is over the tolerance."""
        parts = self.baseline + self.inputs.sum(-1)
        return _check(parts, self.output, tolerance)


@dataclass(frozen=True, eq=False)
class ModelExplanation:
    """The outputs of a whole model, taken apart: of a classifier its logits, before any softmax or sigmoid."""

    output: Tensor
    """What the model answers, shape (..., outputs)."""
    baseline: Tensor
    """What it answers to the reference input, shape (..., outputs)."""
    inputs: Tensor
    """The contribution of each input to each output, shape (..., outputs, in_features)."""
    layers: tuple[Explanation, ...] = field(repr=False)
    """Each dendritic layer on its own: contributions to its own neurons."""
    effects: tuple[Tensor, ...] = field(repr=False)
    """For each dendritic layer, what an output changes by for each unit of a neuron, shape (..., outputs, neurons)."""

    def synapses(self, output: int, layer: int = 0) -> Tensor:
        """The contribution of each synapse of a dendritic layer to an output, shape (..., synapses)."""
        part, effect = self._of(output, layer)
        return part.synapses * effect[..., _index(part.forest.neuron_of_synapse, effect)]

    def dendrites(self, output: int, layer: int = 0) -> Tensor:
        """The contribution of each dendrite of a dendritic layer to an output, shape (..., nodes)."""
        part, effect = self._of(output, layer)
        return part.dendrites * effect[..., _index(part.forest.neuron_of_node, effect)]

    def _of(self, output: int, layer: int) -> tuple[Explanation, Tensor]:
        if check_int("output", output, least=0) >= self.output.shape[-1]:
            raise OptionError(f"output must be one of 0 ... {self.output.shape[-1] - 1}: got {output}")
        if check_int("layer", layer, least=0) >= len(self.layers):
            raise OptionError(f"layer must be one of {len(self.layers)} dendritic layers, from 0: got {layer}")
        return self.layers[layer], self.effects[layer][..., output, :]

    def check(self, tolerance: float = TOLERANCE) -> float:
        """The largest difference between an output and its parts, by inputs and by each layer; raises if over it."""
        worst = _check(self.baseline + self.inputs.sum(-1), self.output, tolerance)
        for layer, effect in zip(self.layers, self.effects, strict=True):
            change = (layer.output - layer.baseline).unsqueeze(-2)  # (..., 1, neurons)
            worst = max(worst, _check(self.baseline + (effect * change).sum(-1), self.output, tolerance))
        return worst


@overload
def explain(model: DendriticLayer, x: Tensor, reference: float | Tensor = 0.0) -> Explanation: ...
@overload
def explain(model: nn.Module, x: Tensor, reference: float | Tensor = 0.0) -> Explanation | ModelExplanation: ...
@torch.no_grad()
def explain(model: nn.Module, x: Tensor, reference: float | Tensor = 0.0) -> Explanation | ModelExplanation:
    """Take the outputs of a layer or a model apart: contributions of inputs, synapses and dendrites, and a baseline.

    The model is taken in evaluation mode, and left as it is.

    Args:
        model: a `DendriticLayer`; an `nn.Sequential` of dendritic and linear layers, batch norm, dropout and
            activations; or a model that is a `Chain` of these, as `MLNClassifier`, `DendriticNetwork`, `DenseNetwork`,
            `MLP` and `Perceptrons` are. Subclasses with a forward of their own and
            modules with forward hooks are rejected.
        x: inputs, shape (..., in_features).
        reference: the input to compare with: a number, or a tensor that broadcasts to `x`, such as the mean input.

    Example:
        >>> layer = DendriticLayer(16, 2, branching=[4, 2], wiring="partition", activation="tanh")
        >>> found = explain(layer, torch.randn(5, 16))
        >>> found.synapses.shape, found.dendrites.shape, found.inputs.shape
        (torch.Size([5, 16]), torch.Size([5, 6]), torch.Size([5, 2, 16]))
        >>> found.check() < 1e-8
        True
    """
    check_module(model)
    steps = chain_of(copy.deepcopy(model).double().eval())
    if not isinstance(x, Tensor) or x.dim() == 0:
        raise ShapeError(f"x must be a tensor of shape (..., in_features): got {x!r:.60}")
    at = x.double().reshape(x.shape[:-1].numel(), x.shape[-1])  # -1 is not defined for an empty batch
    try:
        base = torch.as_tensor(reference, device=x.device).double().expand_as(x).reshape(at.shape)
    except (RuntimeError, TypeError, ValueError):
        got = tuple(reference.shape) if isinstance(reference, Tensor) else repr(reference)
        raise ShapeError(f"reference must be a number or broadcast to x of shape {tuple(x.shape)}: got {got}") from None
    leading = x.shape[:-1]
    if x.dim() != 2 and any(isinstance(step, nn.BatchNorm1d) and not isinstance(step, BatchNorm) for step in steps):
        raise ShapeError(f"x must have shape (batch, in_features) for nn.BatchNorm1d: got {tuple(x.shape)}")
    if isinstance(model, DendriticLayer):
        return _explain_layer(steps[0], at, base, leading)  # type: ignore[arg-type]
    pairs = list(zip(run_chain(steps, at), run_chain(steps, base), strict=True))
    return _explain_chain(steps, pairs, leading)


def _explain_layer(layer: DendriticLayer, at: Tensor, base: Tensor, leading: torch.Size) -> Explanation:
    forest, weight = layer.forest, layer.weight
    here, there = trace(layer, at), trace(layer, base)
    slopes = secant(layer.activation, here.sums, there.sums)
    roots = _index(forest.roots, at)
    if not layer.root_activation:
        slopes[:, roots] = 1.0
    change = torch.cat([at - base, here.values - there.values], dim=-1)  # (batch, inputs and nodes)
    # What the neuron's answer changes by for each unit of a dendrite's sum: down the path from the root
    sensitivity = torch.zeros_like(slopes)
    sensitivity[:, roots] = slopes[:, roots]
    for level in reversed(forest.levels):  # parents before children
        edges = np.arange(forest.offsets[level.start], forest.offsets[level.stop])
        edges = edges[forest.source[edges] >= forest.in_features]
        child = _index(forest.source[edges] - forest.in_features, at)
        parent, edge = _index(forest.node_of_edge[edges], at), _index(edges, at)
        sensitivity[:, child] = sensitivity[:, parent] * weight[edge] * slopes[:, child]
    per_unit = sensitivity[:, _index(forest.node_of_edge, at)] * weight  # (batch, edges)
    contributions = per_unit * change[:, _index(forest.source, at)]
    synapses = _index(forest.synapse_edges, at)
    dendrites = here.values - there.values  # of the roots; the others are those of the edges that read them
    inner = np.flatnonzero(forest.source >= forest.in_features)
    dendrites[:, _index(forest.source[inner] - forest.in_features, at)] = contributions[:, _index(inner, at)]
    parts = (here.values[:, roots], there.values[:, roots], contributions[:, synapses], dendrites)
    output, baseline, by_synapse, by_dendrite = (part.reshape(*leading, part.shape[-1]) for part in parts)
    multipliers = per_unit[:, synapses].reshape(*leading, forest.synapses)
    return Explanation(output, baseline, by_synapse, by_dendrite, forest, multipliers)


def _explain_chain(
    steps: Sequence[nn.Module], pairs: Sequence[tuple[Tensor, Tensor]], leading: torch.Size
) -> ModelExplanation:
    """From the last step to the first: what an output changes by for each unit of a step's input."""
    output, baseline = pairs[-1]
    outputs = output.shape[-1]
    effect = torch.eye(outputs, dtype=output.dtype, device=output.device).expand(len(output), -1, -1)
    layers, effects = [], []
    for step, (at, base) in zip(reversed(steps), reversed(pairs[:-1]), strict=True):
        if isinstance(step, DendriticLayer):
            layers.append(_explain_layer(step, at, base, leading))
            effects.append(effect.reshape(*leading, outputs, effect.shape[-1]))
            flat = layers[-1].multipliers.reshape(len(at), step.forest.synapses)
            neuron, source = _index(step.forest.neuron_of_synapse, at), _index(step.forest.synapse_inputs, at)
            before = at.new_zeros(len(at), outputs, at.shape[-1])
            for number in range(outputs):  # one at a time: outputs times synapses would be the largest tensor by far
                before[:, number].index_add_(1, source, effect[:, number, neuron] * flat)
            effect = before
        elif isinstance(step, nn.Linear):
            effect = effect @ step.weight
        elif isinstance(step, nn.BatchNorm1d):
            scale = 1.0 if step.weight is None else step.weight
            variance = torch.as_tensor(step.running_var)  # `chain_of` rejects batch norm without one
            effect = effect * (scale / (variance + step.eps).sqrt())
        elif not isinstance(step, nn.Dropout | nn.Identity):
            effect = effect * secant(step, at, base).unsqueeze(1)
    at, base = pairs[0]
    inputs = (effect * (at - base).unsqueeze(1)).reshape(*leading, outputs, at.shape[-1])
    output, baseline = output.reshape(*leading, outputs), baseline.reshape(*leading, outputs)
    return ModelExplanation(output, baseline, inputs, tuple(layers[::-1]), tuple(effects[::-1]))


def secant(function: Callable[[Tensor], Tensor], at: Tensor, base: Tensor) -> Tensor:
    """Slopes of an elementwise function between two places, its gradient where they coincide.

    >>> secant(torch.relu, torch.tensor([1.0, 2.0, -1.0]), torch.tensor([-1.0, 2.0, -2.0])).tolist()
    [0.5, 1.0, 0.0]
    """
    step, rise = at - base, function(at) - function(base)
    with torch.enable_grad():
        place = at.detach().clone().requires_grad_()
        value = function(place)
        gradient = torch.autograd.grad(value.sum(), place)[0] if value.requires_grad else torch.zeros_like(at)
    gradient = torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
    near = step.abs() <= NEAR * (1 + at.abs())
    smooth = (rise - gradient * step).abs() <= NEAR * (1 + function(at).abs())  # not where a step function jumps
    coincide = (step == 0) | (near & smooth)
    return torch.where(coincide, gradient, rise / torch.where(step == 0, torch.ones_like(step), step))


def _by_neuron_and_input(synapses: Tensor, forest: Forest) -> Tensor:
    """Values of synapses, summed for each neuron and input: shape (..., neurons, in_features)."""
    place = forest.neuron_of_synapse.astype(np.int64) * forest.in_features + forest.synapse_inputs
    total = synapses.new_zeros(*synapses.shape[:-1], forest.neurons * forest.in_features)
    total.index_add_(-1, _index(place, synapses), synapses)
    return total.reshape(*synapses.shape[:-1], forest.neurons, forest.in_features)


def _index(index: np.ndarray, like: Tensor) -> Tensor:
    return torch.tensor(index, device=like.device).long()  # a copy: a forest's arrays are not to be written to


def _check(parts: Tensor, output: Tensor, tolerance: float) -> float:
    worst = float((parts - output).abs().max()) if output.numel() else 0.0
    if not worst <= tolerance:  # written so that NaN fails
        raise DendritreeError(
            f"contributions and baseline must add up to the output within {tolerance}: off by {worst}"
        )
    return worst
