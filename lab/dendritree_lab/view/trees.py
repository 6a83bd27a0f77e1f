"""The layers of a model whose neurons the page shows, and single neurons as separate layers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dendritree.errors import check_index
from dendritree.layers import DendriticLayer
from dendritree.tree import Forest


class TreeLayer:
    """A layer whose neurons can be shown: dendritic, or linear, whose units are trees without dendrites.

    >>> TreeLayer("layer", DendriticLayer(16, 2, branching=4, wiring="shared")).text
    '2 trees of 16 synapses, 4 + 1 dendrites'
    """

    def __init__(self, name: str, module: DendriticLayer | nn.Linear) -> None:
        self.name, self.module = name, module
        self.in_features, self.neurons = module.in_features, module.out_features
        self.dendritic = isinstance(module, DendriticLayer)

    @property
    def text(self) -> str:
        """The layer in words."""
        if isinstance(self.module, DendriticLayer):
            return described(self.module.forest)
        return f"{self.neurons} linear units of {self.in_features:,} synapses, no dendrites"

    def image_shape(self) -> tuple[int, int, int] | None:
        """(channels, height, width) of the image that its wiring reads; None if the wiring is not for images.

        >>> TreeLayer("layer", DendriticLayer(32, 1, branching=2)).image_shape()
        >>> from dendritree.wiring import Local
        >>> layer = DendriticLayer(32, 3, branching=2, fan_in=4, wiring=Local(window=2, image_shape=(4, 8)))
        >>> TreeLayer("layer", layer).image_shape()
        (1, 4, 8)
        """
        if not isinstance(self.module, DendriticLayer):
            return None
        wiring = self.module.wiring
        return getattr(wiring, "image_shape", None) or wiring.image(self.in_features)

    @torch.no_grad()
    def tree(self, neuron: int) -> DendriticLayer:
        """One of its neurons as a separate layer, over all inputs.

        >>> layer = DendriticLayer(4, 2, branching=2, fan_in=4, wiring="shared")
        >>> TreeLayer("layer", layer).tree(1).forest.describe()
        '1 tree of 4 synapses, 2 + 1 dendrites'
        """
        check_index("neuron", neuron, self.neurons)
        module, options = self.module, {"bias": self.module.bias is not None, "backend": "eager"}
        if isinstance(module, DendriticLayer):
            nodes = module.forest.neuron_of_node == neuron
            edges = nodes[module.forest.node_of_edge]
            forest, weight = module.forest.tied(None).part(nodes, edges), module.edge_weight[torch.from_numpy(edges)]
            options |= {"activation": module.activation, "root_activation": module.root_activation}
        else:
            nodes = np.arange(self.neurons) == neuron
            forest, weight = Forest.nested([self.in_features]), module.weight[neuron]
            options |= {"activation": None}
        tree = DendriticLayer.from_forest(forest, **options).requires_grad_(False)
        tree.weight.copy_(weight)
        bias = module.node_bias if isinstance(module, DendriticLayer) else module.bias
        if tree.bias is not None and bias is not None:
            tree.bias.copy_(bias[torch.from_numpy(nodes)])
        return tree


def described(forest: Forest) -> str:
    """A forest in words; a soma alone does not count as a dendrite.

    >>> described(Forest.nested([4])), described(Forest.nested([[4], [4]]))
    ('1 tree of 4 synapses, no dendrites', '1 tree of 8 synapses, 2 + 1 dendrites')
    """
    return forest.describe() if forest.depth > 1 else re.sub(r", 1 dendrite\b", ", no dendrites", forest.describe())


def tree_json(tree: DendriticLayer) -> dict[str, Any]:
    """The JSON that the page needs to draw a neuron; a source of 0 or more is an input, -1 - n is dendrite n."""
    forest = tree.forest
    source = np.where(forest.source < forest.in_features, forest.source, forest.in_features - forest.source - 1)
    return {
        "source": source.tolist(),
        "offsets": forest.offsets.tolist(),
        "weight": shorten(tree.weight),
        "bias": None if tree.bias is None else shorten(tree.bias),
        "text": described(forest).removeprefix("1 tree of "),
    }


def tree_layers(model: nn.Module) -> list[TreeLayer]:
    """The layers of a model whose neurons can be shown, in the order of its modules.

    >>> from dendritree import MLNClassifier
    >>> [(layer.name, layer.neurons) for layer in tree_layers(MLNClassifier(16, 3, branching=4))]
    [('layer', 3)]
    """
    named = model.named_modules()
    return [TreeLayer(name, module) for name, module in named if isinstance(module, DendriticLayer | nn.Linear)]


def shorten(values: Tensor | npt.NDArray[Any]) -> list[float]:
    """Numbers for the page: four decimals are more than a figure shows, and take a third of the bytes."""
    array = values.detach().float().cpu().numpy().ravel() if isinstance(values, Tensor) else values
    rounded: list[float] = np.round(np.asarray(array, dtype=np.float64), 4).tolist()
    return rounded
