"""Explanations: the parts of an output, which add up to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from ..errors import DendritreeError, OptionError, check_index, check_one_of
from ..layers.neuron_layer import index_of
from ..tree import Forest

TOLERANCE = 1e-8
"""Largest error of the sum of contributions and baseline, relative to the largest output above 1."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """The outputs of a layer, decomposed. A synapse or dendrite belongs to one neuron, and contributes to that one."""

    output: Tensor
    """The outputs of the neurons, shape (..., neurons)."""
    baseline: Tensor
    """Their outputs for the reference input, shape (..., neurons)."""
    synapses: Tensor
    """The contribution of each synapse to its neuron, in edge order, shape (..., synapses)."""
    dendrites: Tensor
    """The contribution of each dendrite to its neuron, that of all its synapses together; shape (..., nodes). The
    contribution of a root is the whole difference between its output and the baseline."""
    forest: Forest = field(repr=False)
    multipliers: Tensor = field(repr=False)
    """The change of a neuron's output per unit of a synapse's input, shape (..., synapses)."""

    @property
    def inputs(self) -> Tensor:
        """The contribution of each input to each neuron, shape (..., neurons, in_features)."""
        forest, leading = self.forest, self.synapses.shape[:-1]
        place = forest.neuron_of_synapse.astype(np.int64) * forest.in_features + forest.synapse_inputs
        total = self.synapses.new_zeros(*leading, forest.neurons * forest.in_features)
        total.index_add_(-1, index_of(place, total), self.synapses)
        return total.reshape(*leading, forest.neurons, forest.in_features)

    def check(self, tolerance: float = TOLERANCE) -> float:
        """The largest difference between an output and the sum of its parts; raises if it exceeds the tolerance."""
        parts = self.baseline + self.inputs.sum(-1)
        return _check(parts, self.output, tolerance)


@dataclass(frozen=True, eq=False)
class ModelExplanation:
    """The outputs of a whole model, decomposed; for a classifier, its logits, before any softmax or sigmoid."""

    output: Tensor
    """The outputs of the model, shape (..., outputs)."""
    baseline: Tensor
    """Its outputs for the reference input, shape (..., outputs)."""
    inputs: Tensor
    """The contribution of each input to each output, shape (..., outputs, in_features); with `nn.Flatten` the inputs
    keep their shape."""
    layers: tuple[Explanation, ...] = field(repr=False)
    """The explanation of each dendritic layer: contributions to its own neurons."""
    effects: tuple[Tensor, ...] = field(repr=False)
    """For each dendritic layer, the change of an output per unit of a neuron, shape (..., outputs, neurons)."""
    names: tuple[str, ...] = ()
    """Names of the inputs: the columns of an estimator or of a table."""
    outputs: tuple[str, ...] = ()
    """Names of the outputs: classes, or the target of a table."""

    def contributions(self, output: int | str = 0, example: int = 0) -> dict[str, float]:
        """The contribution of each column to an output, given by index or name, for one of the rows.

        Contributions and baseline add up to the output. With two classes there is one output, the log-odds of the
        second.
        """
        if not self.names:
            raise OptionError(
                "contributions by name require an estimator or a table model: got a network; see its inputs"
            )
        if isinstance(output, str):
            output = self.outputs.index(check_one_of("output", output, self.outputs))
        outputs = self.output.shape[-1]
        of_row = self.inputs.reshape(-1, outputs, len(self.names))[check_index("example", example, len(self.output))]
        return dict(zip(self.names, of_row[check_index("output", output, outputs)].tolist(), strict=True))

    def synapses(self, output: int, layer: int = 0) -> Tensor:
        """The contribution of each synapse of a dendritic layer to an output, shape (..., synapses)."""
        part, effect = self._of(output, layer)
        return part.synapses * effect[..., index_of(part.forest.neuron_of_synapse, effect)]

    def dendrites(self, output: int, layer: int = 0) -> Tensor:
        """The contribution of each dendrite of a dendritic layer to an output, shape (..., nodes)."""
        part, effect = self._of(output, layer)
        return part.dendrites * effect[..., index_of(part.forest.neuron_of_node, effect)]

    def _of(self, output: int, layer: int) -> tuple[Explanation, Tensor]:
        layer = check_index("the dendritic layer", layer, len(self.layers))
        return self.layers[layer], self.effects[layer][..., check_index("output", output, self.output.shape[-1]), :]

    def check(self, tolerance: float = TOLERANCE) -> float:
        """The largest difference between an output and its parts, by input and by layer; raises if it is too large."""
        by_input = self.inputs.flatten(self.output.dim())
        worst = _check(self.baseline + by_input.sum(-1), self.output, tolerance)
        for layer, effect in zip(self.layers, self.effects, strict=True):
            change = (layer.output - layer.baseline).unsqueeze(-2)  # (..., 1, neurons)
            worst = max(worst, _check(self.baseline + (effect * change).sum(-1), self.output, tolerance))
        return worst


def _check(parts: Tensor, output: Tensor, tolerance: float) -> float:
    worst = float((parts - output).abs().max()) if output.numel() else 0.0
    largest = float(output.abs().max()) if output.numel() else 0.0
    if not worst <= tolerance * max(1.0, largest):  # written so that NaN fails
        raise DendritreeError(
            f"contributions and baseline must add up to the output within {tolerance}: off by {worst}"
        )
    return worst
