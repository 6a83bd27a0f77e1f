"""What neurons and their branches read, and with which weight: values per input, without drawing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import OptionError, ShapeError, check_index
from ..explanation import explain
from ..layers import DendriticLayer
from ..layers.forest_layer import ForestLayer
from ..models.holders import network_of
from ..tree import Forest
from ..wiring.image_orders import check_image_shape, image_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SOMA = -1
"""The branch of synapses directly at the root."""


class Branches(NamedTuple):
    """The branches of a neuron: the children of its root, each with its whole subtree."""

    nodes: Integers
    """The first dendrite of each branch; `SOMA` comes first if the root has synapses of its own."""
    of_synapse: Integers
    """The branch of each synapse of the neuron, as an index into `nodes`."""
    synapses: Integers
    """The neuron's synapses, as indices among those of the layer."""

    @property
    def names(self) -> list[str]:
        """Names of the branches in figures."""
        somas = int(self.nodes[0] == SOMA)
        return ["soma"] * somas + [f"branch {place}" for place in range(len(self.nodes) - somas)]


def tree_layer_of(model: Any) -> ForestLayer:
    """The layer whose trees `plot_tree` draws: as `layer_of`; if there is none, the first dendritic convolution."""
    layers = [module for module in network_of(model).modules() if isinstance(module, ForestLayer)]
    if not layers:
        raise OptionError(f"the model must have a DendriticLayer or a DendriticConv2d to draw: {_got(model)}")
    return next((layer for layer in layers if isinstance(layer, DendriticLayer)), layers[0])


def layer_of(model: Any) -> DendriticLayer:
    """A dendritic layer: the argument itself, or the first one of a model or of an object that holds a network.

    >>> from torch import nn
    >>> layer_of(nn.Sequential(nn.Flatten(), DendriticLayer(4, 1))).in_features
    4
    """
    for module in network_of(model).modules():
        if isinstance(module, DendriticLayer):
            return module
    raise OptionError(f"the model must have a DendriticLayer to draw: {_got(model)}")


def _got(model: Any) -> str:
    """What was given instead of a layer, and what can be drawn of it."""
    names = (name for name, module in network_of(model).named_modules() if name and isinstance(module, ForestLayer))
    first = next((re.sub(r"\.(\d+)", r"[\1]", name) for name in names), None)
    hint = "" if first is None else f"; plot_tree draws its convolutions, such as net.{first}"
    return f"got {type(model).__name__}{hint}"


def names_of(model: Any) -> list[str] | None:
    """Names of the inputs of the network that an estimator or a table model holds, if it knows them."""
    encoding = getattr(model, "encoding", None)
    names = getattr(model, "feature_names_in_", None) if encoding is None else encoding.features
    if names is None:
        return None
    flags = getattr(model, "input_columns", ())[len(names) :]  # the indicators of missing values
    return [*map(str, names), *(f"{names[column]} missing" for column in flags)]


def input_names(names: Sequence[str] | None, inputs: int) -> list[str]:
    """The names of a model's inputs: those given, or `x0`, `x1` ..."""
    if names is not None and len(names) != inputs:
        raise ShapeError(f"names must be one for each of {inputs} inputs: got {len(names)}")
    return [f"x{i}" for i in range(inputs)] if names is None else list(names)


def branches_of(forest: Forest, neuron: int = 0) -> Branches:
    """The branches of a neuron.

    >>> branches_of(Forest.grow([2, 4])).of_synapse.tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    branch = np.full(forest.nodes, SOMA, dtype=np.int64)  # the child of its root that a node is in
    for _, child, parent in forest.descend():
        branch[child] = np.where(branch[parent] == SOMA, child, branch[parent])
    synapses = np.flatnonzero(forest.neuron_of_synapse == check_index("neuron", neuron, forest.neurons))
    nodes, of_synapse = np.unique(branch[forest.node_of_edge[forest.synapse_edges[synapses]]], return_inverse=True)
    return Branches(nodes, of_synapse, synapses)


def by_branch(layer: DendriticLayer, neuron: int = 0, values: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """Values of synapses, summed per branch of a neuron and per input, shape (branches, in_features).

    Without values, this is how many synapses of each branch read each input. With `effective_weights`, it is the
    effective receptive field of each branch; their sum is that of the neuron.
    """
    values = np.ones(layer.forest.synapses, dtype=np.int64) if values is None else values
    branches = branches_of(layer.forest, neuron)
    inputs = layer.forest.synapse_inputs[branches.synapses]
    total = np.zeros((len(branches.nodes), layer.in_features), dtype=values.dtype)
    np.add.at(total, (branches.of_synapse, inputs), values[branches.synapses])
    return total


def effective_weights(layer: DendriticLayer, examples: Tensor | None = None) -> Floats:
    """The change of a neuron's output per unit of a synapse's input, shape (synapses,).

    Without examples, this is the product of the weights from the synapse to the root, as if activations had slope 1;
    with examples, the mean over them, using the slopes of the activations between the mean example and each example.

    >>> layer = DendriticLayer(4, 1, branching=2)
    >>> _ = layer.weight.data.copy_(layer.weight.new_tensor([1, 2, 3, 4, 5, 6]))
    >>> effective_weights(layer).tolist()
    [5.0, 10.0, 18.0, 24.0]
    """
    if examples is not None:
        slopes = explain(layer, examples, examples.double().mean(0)).multipliers
        return np.asarray(slopes.reshape(-1, layer.forest.synapses).mean(0).cpu().numpy())
    forest, weight = layer.forest, layer.edge_weight.detach().double().cpu().numpy()
    factor = np.ones(forest.nodes)
    for edge, child, parent in forest.descend():
        factor[child] = factor[parent] * weight[edge]
    return np.asarray((factor[forest.node_of_edge] * weight)[forest.synapse_edges])


def image_of_inputs(layer: DendriticLayer, image_shape: Any = None) -> tuple[int, int, int]:
    """(channels, height, width) of the image that a layer reads: as given, from its wiring, or square.

    >>> image_of_inputs(DendriticLayer(784, 1, branching=28))
    (1, 28, 28)
    """
    shape = check_image_shape(image_shape) or getattr(layer.wiring, "image_shape", None)
    return image_of(shape, layer.in_features)


def as_image(values: npt.NDArray[Any], shape: tuple[int, int, int]) -> npt.NDArray[Any]:
    """Values per input as (..., height, width), summed over channels."""
    return np.asarray(values.reshape(*values.shape[:-1], *shape).sum(-3))
