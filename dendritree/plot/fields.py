"""What neurons and their branches read, and with which weight: numbers by input, no drawing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from ..errors import OptionError, ShapeError, check_int
from ..explanation import explain
from ..layers import DendriticLayer
from ..wiring.images import check_image_shape

__all__ = ["Branches", "branches_of", "effective_weights", "fields", "image_of_inputs", "layer_of", "reads"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SOMA = -1
"""The branch of synapses that sit right at the root."""


class Branches(NamedTuple):
    """The branches of a neuron: the children of its root, each with all that is above it."""

    nodes: Integers
    """The dendrite that each branch begins with; `SOMA` first if the root has synapses of its own."""
    of_synapse: Integers
    """The branch of each synapse of the neuron, as a place in `nodes`."""
    synapses: Integers
    """The neuron's synapses, as numbers among those of the layer."""


def layer_of(model: Any) -> DendriticLayer:
    """A dendritic layer: itself, or the first one of a model.

    >>> layer_of(nn.Sequential(nn.Flatten(), DendriticLayer(4, 1))).in_features
    4
    """
    if isinstance(model, nn.Module):
        for module in model.modules():
            if isinstance(module, DendriticLayer):
                return module
    raise OptionError(f"there must be a DendriticLayer to draw: got {type(model).__name__}")


def check_neuron(layer: DendriticLayer, neuron: int) -> int:
    """A neuron of a layer."""
    if check_int("neuron", neuron, least=0) >= layer.out_features:
        raise OptionError(f"neuron must be one of 0 ... {layer.out_features - 1}: got {neuron}")
    return neuron


def branches_of(layer: DendriticLayer, neuron: int = 0) -> Branches:
    """The branches of a neuron.

    >>> branches_of(DendriticLayer(8, 1, branching=[2, 4])).of_synapse.tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    forest, root = layer.forest, int(layer.forest.roots[check_neuron(layer, neuron)])
    branch = np.full(forest.nodes, SOMA, dtype=np.int64)  # the child of the root that a node is in
    for level in reversed(forest.levels):  # parents before children
        edges = np.arange(forest.offsets[level.start], forest.offsets[level.stop])
        edges = edges[forest.source[edges] >= forest.in_features]
        child, parent = forest.source[edges] - forest.in_features, forest.node_of_edge[edges]
        branch[child] = np.where(branch[parent] == SOMA, child, branch[parent])
    synapses = np.flatnonzero(forest.neuron_of_synapse == neuron)
    node = forest.node_of_edge[forest.synapse_edges[synapses]]
    nodes, of_synapse = np.unique(np.where(node == root, SOMA, branch[node]), return_inverse=True)
    return Branches(nodes, of_synapse, synapses)


def reads(layer: DendriticLayer, neuron: int = 0) -> Integers:
    """How many synapses of each branch of a neuron read each input, shape (branches, in_features)."""
    found = branches_of(layer, neuron)
    counts = np.zeros((len(found.nodes), layer.in_features), dtype=np.int64)
    np.add.at(counts, (found.of_synapse, layer.forest.synapse_inputs[found.synapses]), 1)
    return counts


def effective_weights(layer: DendriticLayer, examples: Tensor | None = None) -> Floats:
    """What a neuron's answer changes by for each unit at a synapse, shape (synapses,).

    Without examples the product of the weights from the synapse to the root, as if activations had slope 1; with
    examples the mean over them, with the slopes of the activations between the mean example and each.

    >>> layer = DendriticLayer(4, 1, branching=2)
    >>> _ = layer.weight.data.copy_(layer.weight.new_tensor([1, 2, 3, 4, 5, 6]))
    >>> effective_weights(layer).tolist()
    [5.0, 10.0, 18.0, 24.0]
    """
    if examples is not None:
        found = explain(layer, examples, examples.double().mean(0)).multipliers
        return np.asarray(found.reshape(-1, layer.forest.synapses).mean(0).cpu().numpy())
    forest, weight = layer.forest, layer.weight.detach().double().cpu().numpy()
    factor = np.ones(forest.nodes)
    for level in reversed(forest.levels):
        edges = np.arange(forest.offsets[level.start], forest.offsets[level.stop])
        edges = edges[forest.source[edges] >= forest.in_features]
        factor[forest.source[edges] - forest.in_features] = factor[forest.node_of_edge[edges]] * weight[edges]
    return np.asarray((factor[forest.node_of_edge] * weight)[forest.synapse_edges])


def fields(layer: DendriticLayer, neuron: int = 0, *, weights: Floats | None = None) -> Floats:
    """The effective receptive field of each branch of a neuron, shape (branches, in_features); their sum is its own.

    `weights` are those of `effective_weights`, where they are at hand.
    """
    found, weights = branches_of(layer, neuron), effective_weights(layer) if weights is None else weights
    field = np.zeros((len(found.nodes), layer.in_features))
    np.add.at(field, (found.of_synapse, layer.forest.synapse_inputs[found.synapses]), weights[found.synapses])
    return field


def image_of_inputs(layer: DendriticLayer, image_shape: Any = None) -> tuple[int, int, int]:
    """(channels, height, width) of the image that a layer reads: as given, as its wiring says, or square.

    >>> image_of_inputs(DendriticLayer(784, 1, branching=28))
    (1, 28, 28)
    """
    shape = check_image_shape(image_shape)
    for wiring in layer.wirings:
        shape = shape or getattr(wiring, "image_shape", None)
    inputs, side = layer.in_features, math.isqrt(layer.in_features)
    if shape is None:
        if side * side != inputs:
            raise ShapeError(f"image_shape must be given for inputs that are no square image: got {inputs} inputs")
        return 1, side, side
    if math.prod(shape) != inputs:
        raise ShapeError(f"image_shape must hold all {inputs} inputs: got {shape}, {math.prod(shape)} pixels")
    return shape


def as_image(values: npt.NDArray[Any], shape: tuple[int, int, int]) -> npt.NDArray[Any]:
    """Values by input as (..., height, width), channels added up."""
    return np.asarray(values.reshape(*values.shape[:-1], *shape).sum(-3))
