"""What takes the place of perceptrons: counted, built on the scale of what they were, and put into the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..layers import DendriticLayer
from ..layers.linear import Linear
from ..randomness import generator_on
from ..wiring import Wiring
from .blocks import Block
from .perceptrons import Perceptron
from .report import Change


@dataclass(frozen=True)
class Trees:
    """A layer of equal trees, not built yet."""

    in_features: int
    out_features: int
    branching: Any
    fan_in: int | None
    """None if it follows from the wiring or from the tree's own shape."""
    wiring: Wiring
    bias: bool
    shape: str
    """The tree for people: children of a node at every level, leaf level first, or for all levels."""
    edges: int
    """Of all trees."""
    nodes: int

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return self.edges + self.nodes * self.bias

    def build(self, like: Tensor, norms: Tensor) -> DendriticLayer:
        """The layer, of the type and on the device of the weights `like`; outputs have about these norms.

        Its roots are linear: the activation that follows in the model is that of the somas.
        """
        layer = DendriticLayer(
            self.in_features,
            self.out_features,
            branching=self.branching,
            fan_in=self.fan_in,
            wiring=self.wiring,
            ragged=True,
            bias=self.bias,
            root_activation=False,
            device=like.device,
            dtype=like.dtype,
        )
        forest = layer.forest
        edges = np.flatnonzero(np.isin(forest.node_of_edge, forest.roots))
        neurons = forest.neuron_of_node[forest.node_of_edge[edges]]
        with torch.no_grad():
            # N(0, 2 / children) at every node keeps E[x^2] through LeakyReLU and doubles it at a linear root.
            scale = (norms / math.sqrt(2)).expand(self.out_features)[_index(neurons, norms)]
            layer.weight[_index(edges, layer.weight)] *= scale.to(layer.weight.dtype)
        return layer


@dataclass(frozen=True)
class Replacement:
    """What takes the place of a block: trees, and the read-out of an MLP."""

    block: Block
    trees: tuple[Trees, ...]

    @property
    def readout_inputs(self) -> int:
        """Inputs of the linear read-out of an MLP; 0 for a single layer, which has none."""
        return self.trees[-1].out_features if len(self.block) > 1 else 0

    @property
    def parameters(self) -> int:
        """Of the new modules."""
        last = self.block[-1]
        biases = last.out_features if self.readout_inputs and last.bias is not None else 0
        return sum(trees.parameters for trees in self.trees) + last.out_features * self.readout_inputs + biases

    @property
    def multiply_adds(self) -> int:
        """Of the new modules for one input vector."""
        return sum(trees.edges for trees in self.trees) + self.block[-1].out_features * self.readout_inputs

    def change(self) -> Change:
        """The replacement as a row of the report."""
        before = [self.block[0].in_features, *(perceptron.out_features for perceptron in self.block)]
        after = [before[0], *(trees.out_features for trees in self.trees), *before[-1:] * (len(self.block) > 1)]
        return Change(
            modules=tuple(perceptron.name for perceptron in self.block),
            before="-".join(map(str, before)),
            after=f"{'-'.join(map(str, after))} {self.trees[0].shape}",
            parameters_before=sum(perceptron.parameters for perceptron in self.block),
            parameters_after=self.parameters,
            multiply_adds_before=sum(perceptron.multiply_adds for perceptron in self.block),
            multiply_adds_after=self.multiply_adds,
        )

    def build(self) -> dict[str, nn.Module]:
        """The new modules by name, with the type and device of the old ones; random, from torch's seed.

        They begin on the scale of what they replace. For inputs of independent N(0, 1), an output of trees has the
        variance that it had before: the squared norm of its row of weights. The biases of the block's outputs are kept.
        """
        modules: dict[str, nn.Module] = {}
        for perceptron, trees in zip(self.block, self.trees, strict=False):
            norms = perceptron.weight.detach().float().norm(dim=1)
            if self.readout_inputs:
                norms = norms.square().mean().sqrt()
            layer = modules[perceptron.name] = trees.build(perceptron.weight, norms)
            if not self.readout_inputs and layer.bias is not None and perceptron.bias is not None:
                with torch.no_grad():
                    layer.bias[_index(layer.forest.roots, layer.bias)] = perceptron.bias
        if self.readout_inputs:
            modules[self.block[-1].name] = _readout(self.block[-1], self.readout_inputs)
        for perceptron in self.block:
            modules[perceptron.name].train(perceptron.module.training)
        return modules


def _index(places: np.ndarray[Any, Any], like: Tensor) -> Tensor:
    return torch.from_numpy(places.astype(np.int64)).to(like.device)


def _readout(perceptron: Perceptron, inputs: int) -> nn.Linear:
    """A linear layer whose rows have about the norm of the old ones."""
    weight, bias = perceptron.weight, perceptron.bias
    linear = Linear(inputs, perceptron.out_features, bias=bias is not None, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        norms = weight.detach().float().norm(dim=1, keepdim=True)
        linear.weight.normal_(generator=generator_on(weight.device))
        linear.weight.mul_((norms / math.sqrt(inputs)).to(weight.dtype))
        if bias is not None:
            linear.bias.copy_(bias)
    return linear


def put_in(model: nn.Module, modules: dict[str, nn.Module]) -> nn.Module:
    """The model with new modules under these names; the model itself may be one of them."""
    for name, module in modules.items():
        if not name:
            return module
        parts = name.split(".")
        parent = model.get_submodule(".".join(parts[:-1]))
        setattr(parent, parts[-1], module)
        if isinstance(parent, nn.TransformerEncoderLayer):
            # In evaluation it passes its weight matrices to one fused kernel, unless that lacks the activation
            parent.activation_relu_or_gelu = 0
        for length in range(len(parts)):
            # A model of ours is no longer what its name and arguments build: `save` must not write them
            for key in ("model_name", "model_arguments"):
                vars(model.get_submodule(".".join(parts[:length]))).pop(key, None)
    for encoder in (module for module in model.modules() if isinstance(module, nn.TransformerEncoder)):
        if not all(getattr(layer, "activation_relu_or_gelu", 1) for layer in encoder.layers):
            encoder.use_nested_tensor = False  # nested tensors are for layers that all have their fast path
    return model
