"""New modules in the place of old ones: built, put on the scale of what they replace, put in."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from ..layers import DendriticLayer
from ..layers.linear import Linear
from .perceptrons import Perceptron
from .sizes import Plan, Trees

__all__ = ["build", "put_in"]


def build(plan: Plan) -> dict[str, nn.Module]:
    """The new modules of a part by name, in the type and on the device of the old ones; random, from torch's seed.

    They begin on the scale of what they replace. For inputs of independent N(0, 1), an output of trees has the variance
    that it had before: the squared norm of its row of weights. The biases of the part's outputs are kept.
    """
    modules: dict[str, nn.Module] = {}
    for perceptron, trees in zip(plan.part, plan.trees, strict=False):
        norms = perceptron.weight.detach().float().norm(dim=1)
        last = plan.readout_inputs is None
        modules[perceptron.name] = _layer(perceptron, trees, norms if last else norms.square().mean().sqrt())
        if last and perceptron.bias is not None:
            _copy_bias(modules[perceptron.name], perceptron.bias)
    if plan.readout_inputs is not None:
        modules[plan.part[-1].name] = _readout(plan.part[-1], plan.readout_inputs)
    for perceptron in plan.part:
        modules[perceptron.name].train(perceptron.module.training)
    return modules


def _layer(perceptron: Perceptron, trees: Trees, norms: Tensor) -> DendriticLayer:
    """Trees with linear roots: the activation that follows in the model is that of the somas."""
    layer = DendriticLayer(
        trees.in_features,
        trees.out_features,
        branching=trees.branching,
        fan_in=trees.fan_in,
        wiring=trees.wiring,
        ragged=True,
        bias=trees.bias,
        root_activation=False,
        device=perceptron.weight.device,
        dtype=perceptron.weight.dtype,
    )
    root_edges, neurons = _root_edges(layer)
    with torch.no_grad():
        # N(0, 2 / children) at every node keeps E[x^2] through LeakyReLU and doubles it at a linear root.
        scale = (norms / math.sqrt(2)).expand(trees.out_features)[neurons.to(norms.device)]
        layer.weight[root_edges] *= scale.to(layer.weight.dtype)
    return layer


def _root_edges(layer: DendriticLayer) -> tuple[Tensor, Tensor]:
    """The edges into roots, and the neuron of each."""
    forest = layer.forest
    neuron = np.full(forest.nodes, -1)
    neuron[forest.roots] = np.arange(forest.neurons)
    of_edge = neuron[forest.node_of_edge]
    edges = np.flatnonzero(of_edge >= 0)
    return torch.from_numpy(edges).to(layer.weight.device), torch.from_numpy(of_edge[edges])


@torch.no_grad()
def _copy_bias(layer: nn.Module, bias: Tensor) -> None:
    assert isinstance(layer, DendriticLayer)
    assert layer.bias is not None
    layer.bias[torch.from_numpy(layer.forest.roots.astype(np.int64)).to(bias.device)] = bias


def _readout(perceptron: Perceptron, inputs: int) -> nn.Linear:
    """A linear layer whose rows have about the norm of the old ones."""
    weight, bias = perceptron.weight, perceptron.bias
    kind = nn.Linear if bias is None else Linear
    linear = kind(inputs, perceptron.out_features, bias=bias is not None, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        norms = weight.detach().float().norm(dim=1, keepdim=True)
        linear.weight.normal_().mul_((norms / math.sqrt(inputs)).to(weight.dtype))
        if bias is not None:
            linear.bias.copy_(bias)
    return linear


def put_in(model: nn.Module, modules: dict[str, nn.Module]) -> nn.Module:
    """The model with new modules under these names; the model itself may be one of them."""
    for name, module in modules.items():
        if not name:
            return module
        parent = model.get_submodule(name.rpartition(".")[0])
        setattr(parent, name.rpartition(".")[2], module)
        if isinstance(parent, nn.TransformerEncoderLayer):
            _switch_off_fast_path(parent)
        _forget_origin(model, name)
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and _has_new_layers(module):
            module.use_nested_tensor = False  # nested tensors are for layers that all have their fast path
    return model


def _forget_origin(model: nn.Module, name: str) -> None:
    """A model of ours is no longer what its name and arguments build: `save` must not write them."""
    parts = name.split(".")
    for length in range(len(parts)):
        around = model.get_submodule(".".join(parts[:length]))
        for key in ("model_name", "model_arguments"):
            vars(around).pop(key, None)


def _switch_off_fast_path(layer: nn.TransformerEncoderLayer) -> None:
    """In evaluation a layer hands its weight matrices to one fused kernel, unless it knows no such activation."""
    layer.activation_relu_or_gelu = 0


def _has_new_layers(encoder: nn.TransformerEncoder) -> bool:
    return any(
        isinstance(layer, nn.TransformerEncoderLayer) and not layer.activation_relu_or_gelu for layer in encoder.layers
    )
