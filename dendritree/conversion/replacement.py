"""Replacements of perceptrons: fit widths and fan-ins to a budget, build the layers, and put them into the model.

Sizes are computed before anything is built. New weights have the scale of those they replace.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import DendritreeError, OptionError
from ..layers.forest_layer import ForestLayer
from ..layers.linear import Linear
from ..layers.neuron_layer import index_of
from ..randomness import generator_on
from ..tree import Forest
from ..tree.levels import AUTO, Branching, auto_branching, is_nested, level_sizes
from ..wiring import Random, Wiring
from ..wiring.image_orders import image_of
from .mlps import Block
from .perceptrons import Perceptron
from .report import Change

SYNAPSES, DENDRITES = 8, 4
"""Default shape of a hidden neuron's tree: the best one for tables in docs/comparison.md."""


@dataclass(frozen=True)
class Trees:
    """A layer of equal trees, not built yet."""

    like: Perceptron
    """The perceptron it replaces."""
    in_features: int
    out_features: int
    branching: Any
    fan_in: int | None
    """Synapses per neuron; None if it follows from the wiring or from the shape of the tree."""
    wiring: Wiring
    shape: str
    """A readable form of the branching: children per node at each level, leaf level first, or for all levels."""
    edges: int
    """Edges of all trees."""
    nodes: int

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return self.edges + self.nodes * (self.like.bias is not None)

    def build(self, norms: Tensor) -> ForestLayer:
        """Build the layer, with the dtype and device of the old weights; `norms` sets the scale of its outputs.

        Its roots are linear: the activation that follows in the model is that of the somas.
        """
        layer = self.like.dendritic(
            self.in_features,
            self.out_features,
            branching=self.branching,
            fan_in=self.fan_in,
            wiring=self.wiring,
            ragged=True,
            bias=self.like.bias is not None,
            root_activation=False,
            device=self.like.weight.device,
            dtype=self.like.weight.dtype,
        )
        forest = layer.forest
        edges = np.flatnonzero(np.isin(forest.node_of_edge, forest.roots))
        neurons = forest.neuron_of_node[forest.node_of_edge[edges]]
        # N(0, 2 / children) at every node keeps E[x^2] through LeakyReLU and doubles it at a linear root.
        scale = (norms / math.sqrt(2)).expand(self.out_features)[index_of(neurons, norms)]
        layer.weight[index_of(edges, layer.weight)] *= scale.to(layer.weight.dtype)
        return layer


@dataclass(frozen=True)
class Replacement:
    """The replacement of a block: trees, and for an MLP its read-out."""

    block: Block
    trees: tuple[Trees, ...]

    @property
    def readout_inputs(self) -> int:
        """Inputs of the linear read-out of an MLP; 0 for a single layer, which has none."""
        return self.trees[-1].out_features if len(self.block) > 1 else 0

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the new modules for one input vector."""
        return sum(trees.edges for trees in self.trees) + self.block[-1].out_features * self.readout_inputs

    @property
    def parameters(self) -> int:
        """Parameters of the new modules."""
        last = self.block[-1]
        biases = last.out_features if self.readout_inputs and last.bias is not None else 0
        return sum(trees.parameters for trees in self.trees) + last.out_features * self.readout_inputs + biases

    def change(self) -> Change:
        """The replacement as a row of the report."""
        before = [self.block[0].in_features, *(perceptron.out_features for perceptron in self.block)]
        after = [before[0], *(trees.out_features for trees in self.trees), *before[-1:] * (len(self.block) > 1)]
        return Change(
            modules=tuple(perceptron.name for perceptron in self.block),
            before="-".join(map(str, before)),
            after=f"{'-'.join(map(str, after))} {self.trees[0].shape}",
            parameters_before=_parameters(self.block),
            parameters_after=self.parameters,
            multiply_adds_before=sum(each.in_features * each.out_features for each in self.block),
            multiply_adds_after=self.multiply_adds,
        )

    @torch.no_grad()
    def build(self) -> dict[str, nn.Module]:
        """The new modules by name, with the dtype and device of the old ones; random, from torch's seed.

        They start on the scale of what they replace. For independent N(0, 1) inputs, an output of trees has the same
        variance as before: the squared norm of its row of weights. The biases of the block's outputs are kept.
        """
        modules: dict[str, nn.Module] = {}
        for perceptron, trees in zip(self.block, self.trees, strict=False):
            norms = perceptron.weight.float().norm(dim=1)
            layer = trees.build(norms.square().mean().sqrt() if self.readout_inputs else norms)
            if not self.readout_inputs and layer.bias is not None and perceptron.bias is not None:
                layer.bias[index_of(layer.forest.roots, layer.bias)] = perceptron.bias
            modules[perceptron.name] = layer
        if self.readout_inputs:
            modules[self.block[-1].name] = _readout(self.block[-1], self.readout_inputs)
        for perceptron in self.block:
            modules[perceptron.name].train(perceptron.module.training)
        return modules


def _readout(perceptron: Perceptron, inputs: int) -> nn.Linear:
    """A linear layer whose rows have about the norm of the old ones."""
    weight, bias = perceptron.weight, perceptron.bias
    linear = Linear(inputs, perceptron.out_features, bias=bias is not None, device=weight.device, dtype=weight.dtype)
    linear.weight.normal_(generator=generator_on(weight.device))
    linear.weight.mul_((weight.float().norm(dim=1, keepdim=True) / math.sqrt(inputs)).to(weight.dtype))
    if bias is not None:
        linear.bias.copy_(bias)
    return linear


def put_in(model: nn.Module, modules: dict[str, nn.Module]) -> nn.Module:
    """Return the model with new modules under these names; the model itself may be one of them."""
    for name, module in modules.items():
        if not name:
            return module
        parts = name.split(".")
        parent = model.get_submodule(".".join(parts[:-1]))
        setattr(parent, parts[-1], module)
        if isinstance(parent, nn.TransformerEncoderLayer):
            # In evaluation mode it passes its weight matrices to one fused kernel, unless that lacks the activation
            parent.activation_relu_or_gelu = 0
        for length in range(len(parts)):
            # Its name and arguments no longer build a model of ours: `save` must not write them
            for key in ("model_name", "model_arguments"):
                vars(model.get_submodule(".".join(parts[:length]))).pop(key, None)
    for encoder in (module for module in model.modules() if isinstance(module, nn.TransformerEncoder)):
        if not all(getattr(layer, "activation_relu_or_gelu", 1) for layer in encoder.layers):
            encoder.use_nested_tensor = False  # nested tensors require the fast path in all layers
    return model


# ------------------------------------------------------------------------------------------------------------ sizes


def fit_blocks(
    blocks: Sequence[Block], budget: float | int, wiring: Wiring, branching: Branching
) -> tuple[list[Replacement], dict[str, str]]:
    """The largest replacements within the budget, which is divided in proportion to the blocks' parameters.

    Also returns the reasons why other blocks cannot be that small, by layer name. If the budget is a number, their
    share goes to the rest.
    """
    reasons: dict[str, str] = {}
    while True:
        left = [block for block in blocks if block[0].name not in reasons]
        share = budget if isinstance(budget, float) else budget / max(sum(map(_parameters, left)), 1)
        replacements = []
        for block in left:
            try:
                replacements.append(_fit(block, math.floor(share * _parameters(block) + 1e-9), wiring, branching))
            except DendritreeError as error:
                reasons |= {perceptron.name: str(error) for perceptron in block}
        if len(replacements) == len(left):
            return replacements, reasons


def least_budget(
    blocks: Sequence[Block], budget: float | int, wiring: Wiring, branching: Branching
) -> float | int | None:
    """The least budget, a share or a number as `budget` is, that converts any of the blocks; None if none does."""
    shares, whole = [1.1], sum(map(_parameters, blocks))
    for block in blocks:
        with contextlib.suppress(DendritreeError):  # a wiring that does not suit the layer
            shares.append(_smallest(block, wiring, branching).parameters / _parameters(block))
    share = min(shares)
    if share > 1:
        return None
    return math.ceil(share * 1000) / 1000 if isinstance(budget, float) else math.ceil(share * whole)


def _smallest(block: Block, wiring: Wiring, branching: Branching) -> Replacement:
    return _replacement(block, wiring, branching, 2 if len(block) > 1 else min(2, block[0].in_features))


def _parameters(block: Block) -> int:
    return sum(perceptron.parameters for perceptron in block)


def _fit(block: Block, allowance: int, wiring: Wiring, branching: Branching) -> Replacement:
    """The largest replacement with at most `allowance` parameters, found by a search over its size."""
    single, inputs = len(block) == 1, block[0].in_features
    low = min(2, inputs) if single else 2
    high = 2 * low
    if single:
        high = (inputs if _fan_in_is_free(branching) else low) + 1
    smallest = _smallest(block, wiring, branching)
    if smallest.parameters > allowance:
        raise OptionError(f"trees here have at least {smallest.parameters:,} parameters: its budget is {allowance:,}")

    def fits(size: int) -> bool:
        return _replacement(block, wiring, branching, size).parameters <= allowance

    while not single and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _replacement(block, wiring, branching, low)


def _replacement(block: Block, wiring: Wiring, branching: Branching, size: int) -> Replacement:
    """A replacement of a given size: the fan-in of a single layer, or the hidden width of an MLP."""
    inputs = block[0].in_features
    if len(block) == 1:
        fan_in = size if _fan_in_is_free(branching) else None
        return Replacement(block, (_trees(block[0], inputs, block[0].out_features, branching, fan_in, wiring),))
    trees: list[Trees] = []
    widest = max(perceptron.out_features for perceptron in block[:-1])
    for perceptron in block[:-1]:
        neurons = max(1, round(perceptron.out_features / widest * size))
        shape = (max(2, min(inputs, SYNAPSES)), DENDRITES) if branching == AUTO else branching
        fan_in = min(inputs, SYNAPSES * DENDRITES) if isinstance(branching, int) else None
        # An image, or any order of the inputs, exists only for the first layer.
        trees.append(_trees(perceptron, inputs, neurons, shape, fan_in, Random() if trees else wiring))
        inputs = neurons
    return Replacement(block, tuple(trees))


def _fan_in_is_free(branching: Branching) -> bool:
    return branching == AUTO or isinstance(branching, int)


def _trees(like: Perceptron, ins: int, outs: int, branching: Any, fan_in: int | None, wiring: Wiring) -> Trees:
    """A layer of trees as `DendriticLayer` would grow them, with biases if the perceptron has any."""
    if hasattr(wiring, "image_shape"):  # raises for inputs that are not an image: the layer is left alone
        image_of(wiring.image_shape or like.patch, ins, wiring.name)
    if is_nested(branching):
        tree = Forest.nested(branching)
        shape, edges, nodes = str(branching), tree.edges, tree.nodes
    else:
        synapses = level_sizes(branching)[0] if fan_in is None else fan_in
        levels = level_sizes(auto_branching(synapses) if branching == AUTO else branching, fan_in=synapses, ragged=True)
        by_level = [-(-below // above) for below, above in itertools.pairwise(levels)]
        shape = f"b={branching}" if isinstance(branching, int) else str(by_level)
        edges, nodes = sum(levels[:-1]), sum(levels[1:])
    return Trees(like, ins, outs, branching, fan_in, wiring, shape, outs * edges, outs * nodes)
