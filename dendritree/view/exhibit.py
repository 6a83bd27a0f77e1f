"""A model as the page shows it: its layers, its classes, and what an input does in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError
from ..layers import DendriticLayer
from ..models import MLNBinaryClassifier
from ..models.output import make_output
from ..models.sizing import parameters_of
from .pixels import Pixels
from .trees import NeuronTree, TreeLayer, shorten, to_floats, tree_layers

__all__ = ["Exhibit", "Sample"]

KEPT_TREES = 64
"""Neurons whose trees are kept ready: ten browsers look at a few each."""


@dataclass(frozen=True, eq=False)
class Sample:
    """An example of the data set: its pixels, in [0, 1] as `Pixels` takes them, or its features; and its class."""

    x: Tensor
    label: str


@dataclass(eq=False)
class Exhibit:
    """A model, and what is known of its inputs and outputs.

    >>> from dendritree import MLNClassifier
    >>> exhibit = Exhibit("ten trees", MLNClassifier(64, 10, branching=8), Pixels((1, 8, 8)))
    >>> exhibit.describe()["layers"][0]["text"]
    '10 trees of 64 synapses, 8 + 1 dendrites'
    """

    name: str
    model: nn.Module
    pixels: Pixels | None
    """None for a model of plain vectors."""
    classes: Sequence[str] = ()
    """Names of the classes; numbers if empty."""
    samples: Sequence[Sample] = ()
    features: Sequence[str] = ()
    """Names of the inputs of a model of vectors, where they have any."""
    notes: Sequence[str] = field(default_factory=list)
    """Sentences for the page: where the data are from, how well the model does."""

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)
        self._tree = lru_cache(KEPT_TREES)(self._make_tree)
        if not self.layers:
            raise OptionError(f"a model must have dendritic or linear layers to be shown: got {self.model!r:.80}")

    @cached_property
    def layers(self) -> list[TreeLayer]:
        """The layers that can be looked into, in the order in which the model runs them.

        The order, and which of them read the model's own inputs, come from one run with a blank input.
        """
        found: dict[nn.Module, TreeLayer] = {layer.module: layer for layer in tree_layers(self.model)}
        order: dict[nn.Module, None] = {}
        hooks = [module.register_forward_pre_hook(lambda m, _: order.setdefault(m)) for module in found]
        try:
            self.model(self.blank())
        finally:
            for hook in hooks:
                hook.remove()
        return [found[module] for module in order]

    @cached_property
    def in_features(self) -> int:
        """Inputs of the model; of a model of images, the pixels that it sees."""
        if self.pixels:
            return self.pixels.in_features
        stated = (getattr(module, "in_features", None) for module in self.model.modules())
        return next(size for size in stated if isinstance(size, int))

    @property
    def dtype(self) -> torch.dtype:
        """The type that the model computes in."""
        return next(self.model.parameters()).dtype

    def blank(self) -> Tensor:
        """The model's input for a drawing without a stroke, or zeros."""
        x = self.pixels.to_input(torch.zeros(1, math.prod(self.pixels.image_shape))) if self.pixels else None
        return (torch.zeros(1, self.in_features) if x is None else x).to(self.dtype)

    # ------------------------------------------------------------------------------------------------------ structure

    def _make_tree(self, layer: int, neuron: int) -> NeuronTree:
        if not 0 <= layer < len(self.layers):
            raise ShapeError(f"layer must be one of 0 ... {len(self.layers) - 1}: got {layer}")
        return self.layers[layer].tree(neuron)

    def tree(self, layer: int, neuron: int) -> NeuronTree:
        """The tree of a neuron."""
        return self._tree(layer, neuron)

    def grid(self, layer: int) -> dict[str, Any]:
        """How the inputs of a layer are laid out on the page: what they are, rows, columns, and tiles of an image."""
        inputs = self.layers[layer].in_features
        conv = any(isinstance(module, nn.Conv2d) for module in self.model.modules())
        if layer == 0 and not conv and inputs == self.in_features:
            if self.pixels:
                channels, height, width = self.pixels.shape
                return {"of": "pixels", "tiles": channels, "height": height, "width": width}
            return {"of": "features", "tiles": 1, **_near_square(inputs)}
        if layer == 0 and conv:
            maps = self.layers[0].image_shape() or self._maps(inputs)
            return {"of": "features", "tiles": maps[0], "height": maps[1], "width": maps[2]}
        return {"of": "neurons", "tiles": 1, **_near_square(inputs)}

    def _maps(self, inputs: int) -> tuple[int, int, int]:
        """Channels, height and width of the features of a CNN: those of its last convolution."""
        channels = [module.out_channels for module in self.model.modules() if isinstance(module, nn.Conv2d)][-1]
        side = math.isqrt(inputs // channels)
        return (channels, side, side) if channels * side * side == inputs else (1, 1, inputs)

    @property
    def outputs(self) -> int:
        """Outputs of the model."""
        return self.layers[-1].neurons

    @cached_property
    def class_names(self) -> list[str]:
        """Names of the classes. One output that is a probability answers a question: two classes."""
        count = 2 if self.outputs == 1 else self.outputs
        return list(self.classes) if self.classes else [str(number) for number in range(count)]

    @cached_property
    def _to_probabilities(self) -> nn.Module | None:
        """What makes probabilities of the model's output, None if it gives a quantity."""
        last = getattr(self.model, "output", None) or getattr(getattr(self.model, "head", None), "output", None)
        if isinstance(last, nn.Sigmoid | nn.Softmax):
            return nn.Identity()
        if self.outputs == 1 and not self.classes and not isinstance(self.model, MLNBinaryClassifier):
            return None  # a logit or a regression: without classes to name, the number itself
        return make_output("probabilities", self.outputs)

    @property
    def gives_probabilities(self) -> bool:
        """Whether there are classes; otherwise the output is a quantity."""
        return self._to_probabilities is not None

    def describe(self) -> dict[str, Any]:
        """All that the page has to know of the model, as JSON values."""
        pixels = self.pixels
        return {
            "name": self.name,
            "parameters": parameters_of(self.model),
            "classes": self.class_names if self.gives_probabilities else [],
            "notes": list(self.notes),
            "features": list(self.features),
            "samples": [sample.label for sample in self.samples],
            "pixels": pixels
            and {
                "raster": pixels.raster,
                "image": pixels.image_shape,
                "shape": pixels.shape,
                "brush": round(pixels.brush, 4),
                "centres": pixels.centres,
                "text": pixels.describe(),
            },
            "layers": [
                {
                    "name": layer.name,
                    "neurons": layer.neurons,
                    "inputs": layer.in_features,
                    "dendritic": layer.dendritic,
                    "text": _layer_text(layer),
                    "grid": self.grid(number),
                }
                for number, layer in enumerate(self.layers)
            ],
        }

    # ------------------------------------------------------------------------------------------------------- activity

    def of_drawing(self, drawing: npt.NDArray[np.uint8], *, centred: bool) -> Tensor:
        """The image of a drawing, as `activity` takes it."""
        if self.pixels is None:
            raise OptionError("a model of vectors takes no drawing: choose one of its samples")
        return self.pixels.of_drawing(drawing, centred=centred)

    @torch.no_grad()
    def activity(self, x: Tensor, layer: int, neuron: int) -> dict[str, Any]:
        """What an input (1, pixels or features) does: in one neuron's tree, in every layer, to the classes.

        `image` is what the model sees, in [0, 1]; `reads` the inputs of the neuron's layer; `dendrites` the outputs of
        its nodes, the root last; `neurons` the outputs of every layer; `classes` probabilities, `output` numbers.
        """
        tree = self.tree(layer, neuron)
        image = self.pixels.to_unit(x) if self.pixels else x
        given = (self.pixels.to_input(x) if self.pixels else x).to(self.dtype)
        seen: dict[int, tuple[Tensor, Tensor]] = {}
        hooks = [
            each.module.register_forward_hook(
                lambda _, inputs, output, number=number: seen.update({number: (inputs[0], output)})
            )
            for number, each in enumerate(self.layers)
        ]
        try:
            out = self.model(given)
        finally:
            for hook in hooks:
                hook.remove()
        reads = to_floats(seen[layer][0].reshape(-1))
        return {
            "image": shorten(to_floats(image.reshape(-1))),
            "reads": shorten(reads),
            "dendrites": shorten(tree.activity(reads)),
            "neurons": [shorten(to_floats(seen[number][1].reshape(-1))) for number in range(len(self.layers))],
            "classes": shorten(self.probabilities(out)[0]),
            "output": shorten(to_floats(out.reshape(-1))),
        }

    def probabilities(self, out: Tensor) -> npt.NDArray[np.float32]:
        """Probabilities (n, classes) of the model's outputs (n, outputs); of no class if it gives a quantity."""
        if self._to_probabilities is None:
            return np.zeros((len(out), 0), dtype=np.float32)
        chances = to_floats(self._to_probabilities(out))
        return np.concatenate([1 - chances, chances], axis=1) if self.outputs == 1 else chances

    @torch.no_grad()
    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """Share of examples, as `activity` takes them, whose likeliest class is right."""
        given = (self.pixels.to_input(x) if self.pixels else x).to(self.dtype)
        guess = self.probabilities(self.model(given)).argmax(1)
        return float((guess == y.numpy()).mean())


def _layer_text(layer: TreeLayer) -> str:
    if isinstance(layer.module, DendriticLayer):
        return layer.module.forest.describe()
    return f"{layer.neurons} linear units of {layer.in_features:,} synapses, no dendrites"


def _near_square(count: int) -> dict[str, int]:
    """Rows and columns for so many cells; the last row may be short."""
    width = math.ceil(math.sqrt(count)) if count > 12 else count
    return {"height": -(-count // width), "width": width}
