"""Single neurons of a model as trees: their edges, weights, and the activity of every dendrite for one input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import ShapeError
from ..layers import DendriticLayer
from ..tree import Forest, IntArray

__all__ = ["NeuronTree", "TreeLayer", "tree_layers"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class NeuronTree:
    """One neuron of a layer: a forest of a single tree over all the layer's inputs, with its weights.

    >>> layer = DendriticLayer(4, 2, branching=2, fan_in=4, wiring="shared")
    >>> tree = TreeLayer("layer", layer).tree(1)
    >>> tree.forest.describe()
    '1 tree of 4 synapses, 2 + 1 dendrites'
    """

    forest: Forest
    weight: Floats
    bias: Floats | None
    activation: nn.Module
    root_activation: bool

    def activity(self, x: Floats) -> Floats:
        """The output of every dendrite, the neuron's own last, for one input of shape (in_features,)."""
        forest = self.forest
        if x.shape != (forest.in_features,):
            raise ShapeError(f"an input must have {forest.in_features} values: got shape {x.shape}")
        rows = np.concatenate([x.astype(np.float32), np.zeros(forest.nodes, dtype=np.float32)])
        for level in forest.levels:
            edges = slice(forest.offsets[level.start], forest.offsets[level.stop])
            products = self.weight[edges] * rows[forest.source[edges]]
            sums = np.add.reduceat(products, forest.offsets[level] - forest.offsets[level.start])
            if self.bias is not None:
                sums = sums + self.bias[level]
            out = self.activation(torch.from_numpy(sums)).numpy()
            if not self.root_activation and level.stop == forest.nodes:
                out[-1] = sums[-1]  # the root is the last node, on the last level, alone there
            rows[forest.in_features + level.start : forest.in_features + level.stop] = out
        return rows[forest.in_features :]

    def as_json(self) -> dict[str, Any]:
        """What the page needs to draw it; a source from 0 on is an input, -1 - n is the dendrite n."""
        forest = self.forest
        source = np.where(forest.source < forest.in_features, forest.source, forest.in_features - forest.source - 1)
        return {
            "source": source.tolist(),
            "offsets": forest.offsets.tolist(),
            "weight": shorten(self.weight),
            "bias": None if self.bias is None else shorten(self.bias),
            "text": forest.describe().removeprefix("1 tree of "),
        }


class TreeLayer:
    """A layer whose neurons can be shown: dendritic, or linear, whose units are trees without dendrites."""

    def __init__(self, name: str, module: DendriticLayer | nn.Linear) -> None:
        self.name, self.module = name, module
        self.in_features, self.neurons = module.in_features, module.out_features

    @property
    def dendritic(self) -> bool:
        """Whether its neurons are trees with dendrites."""
        return isinstance(self.module, DendriticLayer)

    def image_shape(self) -> tuple[int, int, int] | None:
        """(channels, height, width) of the image that its wiring says it reads; None if it says nothing.

        >>> TreeLayer("layer", DendriticLayer(32, 1, branching=2)).image_shape()
        >>> from dendritree import Local
        >>> layer = DendriticLayer(32, 3, branching=2, fan_in=4, wiring=Local(window=2, image_shape=(4, 8)))
        >>> TreeLayer("layer", layer).image_shape()
        (1, 4, 8)
        """
        for wiring in self.module.wirings if isinstance(self.module, DendriticLayer) else ():
            shape: tuple[int, int, int] | None = getattr(wiring, "image_shape", None)
            if shape is not None:
                return shape
            if wiring.image(self.in_features) is not None:
                return wiring.image(self.in_features)
        return None

    def tree(self, neuron: int) -> NeuronTree:
        """One of its neurons."""
        if not 0 <= neuron < self.neurons:
            raise ShapeError(f"neuron must be one of 0 ... {self.neurons - 1}: got {neuron}")
        module = self.module
        bias = None if module.bias is None else to_floats(module.bias)
        if isinstance(module, nn.Linear):
            forest = Forest(
                self.in_features,
                np.arange(self.in_features, dtype=np.int32),
                np.array([0, self.in_features], dtype=np.int32),
                np.array([0], dtype=np.int32),
            )
            own = None if bias is None else bias[neuron : neuron + 1]
            return NeuronTree(forest, to_floats(module.weight[neuron]), own, nn.Identity(), False)
        forest, nodes, edges = single_tree(module.forest, neuron)
        return NeuronTree(
            forest,
            to_floats(module.weight)[edges],
            None if bias is None else bias[nodes],
            module.activation,
            module.root_activation,
        )


def single_tree(forest: Forest, neuron: int) -> tuple[Forest, IntArray, IntArray]:
    """The tree of one neuron as a forest of its own, and the nodes and edges of the whole that it is made of.

    >>> whole = Forest.grow(2, fan_in=4, neurons=3)
    >>> tree, nodes, edges = single_tree(whole, 1)
    >>> nodes.tolist(), edges.tolist(), tree.source.tolist()
    ([2, 3, 7], [4, 5, 6, 7, 14, 15], [4, 5, 6, 7, 12, 13])
    """
    nodes = np.flatnonzero(forest.neuron_of_node == neuron).astype(np.int32)
    edges = np.flatnonzero(forest.neuron_of_node[forest.node_of_edge] == neuron).astype(np.int32)
    place = np.zeros(forest.nodes, dtype=np.int32)  # where a node of the whole stands in the tree
    place[nodes] = np.arange(len(nodes))
    source, inputs = forest.source[edges], forest.in_features
    source = np.where(source < inputs, source, inputs + place[(source - inputs).clip(0)]).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(forest.fan_ins[nodes])]).astype(np.int32)
    return Forest(inputs, source, offsets, place[forest.roots[neuron : neuron + 1]]), nodes, edges


def tree_layers(model: nn.Module) -> list[TreeLayer]:
    """The layers of a model whose neurons can be shown, in the order of its modules.

    >>> from dendritree import MLNClassifier
    >>> [(layer.name, layer.neurons) for layer in tree_layers(MLNClassifier(16, 3, branching=4))]
    [('layer', 3)]
    """
    return list(_tree_layers(model))


def _tree_layers(model: nn.Module) -> Iterator[TreeLayer]:
    for name, module in model.named_modules():
        if isinstance(module, DendriticLayer | nn.Linear):
            yield TreeLayer(name, module)


def to_floats(tensor: Tensor) -> Floats:
    """A tensor as an array of 32-bit floats."""
    return tensor.detach().float().cpu().numpy()


def shorten(values: npt.ArrayLike) -> list[float]:
    """Numbers for the page: four decimals are more than a picture shows, and a third of the bytes."""
    rounded: list[float] = np.round(np.asarray(values, dtype=np.float64), 4).tolist()
    return rounded
