"""A model as the page shows it: its layers, its classes, and its response to an input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from dendritree.errors import DendritreeError, OptionError, check_index
from dendritree.explanation import explain
from dendritree.layers import DendriticConv1d, DendriticConv2d, DendriticLayer, trace
from dendritree.models import MLNBinaryClassifier
from dendritree.models.chain import Chain, make_output
from dendritree.models.sizing import parameters_of
from dendritree.training.examples import Examples

from ..data import Scaling
from .column_inputs import CellValue, Columns
from .pixels import Pixels
from .trees import TreeLayer, shorten, tree_layers

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, DendriticConv1d, DendriticConv2d)
POOLING = nn.AdaptiveAvgPool2d
KEPT_TREES = 64
"""Maximum number of neurons whose trees are cached: ten browsers show a few each."""
TRIED = 500
"""Number of test examples to evaluate: enough to measure a model's accuracy, in milliseconds."""
ROUNDS = 4
MOST_SAMPLES = 40
MOST_MAPS = 36
"""Maximum number of maps of a stage that the page shows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """An example of the data set: its pixels, in [0, 1] as in `Pixels`, or its features; and its class."""

    x: Tensor
    label: str
    cells: Sequence[CellValue] | None = None
    """Cells of a row of a table, if they are not the features themselves."""


def samples_of(examples: Examples, names: Sequence[str]) -> list[Sample]:
    """Some examples of each class in turn; without classes, the first ones.

    >>> examples = Examples(torch.rand(4, 2), torch.tensor([1, 1, 0, 0]))
    >>> [sample.label for sample in samples_of(examples, ("no", "yes"))]
    ['no', 'yes', 'no', 'yes']
    """
    if not names:
        return [Sample(x[None], f"{float(y):.2f}") for x, y in zip(examples.x[:20], examples.y, strict=False)]
    of_class = [(examples.y == number).nonzero().flatten().tolist() for number in range(len(names))]
    in_turn = [members[turn] for turn in range(ROUNDS) for members in of_class if turn < len(members)]
    return [Sample(examples.x[row][None], names[int(examples.y[row])]) for row in in_turn[:MOST_SAMPLES]]


@dataclass(eq=False)
class Exhibit:
    """A model, and what is known about its inputs and outputs.

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
    """Names of the inputs of a model of vectors, if they have any."""
    columns: Columns | None = None
    """For a model of rows, the controls of its columns; None if they are not known."""
    target: str = ""
    """Name of the quantity that a model of rows predicts, if it is known."""
    scaling: Scaling | None = None
    """How the inputs of a model of vectors were shifted and scaled; None if they were not."""
    notes: Sequence[str] = field(default_factory=list)
    """Sentences for the page: where the data comes from, and how good the model is on it."""
    tree: Callable[[int, int], DendriticLayer] = field(init=False, repr=False)
    """The tree of a neuron, by layer and neuron."""

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)
        self.tree = lru_cache(KEPT_TREES)(
            lambda layer, neuron: self.layers[check_index("layer", layer, len(self.layers))].tree(neuron)
        )
        try:
            shown = self.layers
        except DendritreeError:
            raise
        except Exception as error:  # a model may contain any modules
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise OptionError(f"could not run the model on a blank input: {reason:.200}") from error
        if not shown:
            raise OptionError(f"view shows dendritic and linear layers; the model has none: {self.model!r:.80}")

    @cached_property
    def layers(self) -> list[TreeLayer]:
        """The layers that can be shown, in the order in which the model runs them on a blank input."""
        blank = torch.zeros(1, math.prod(self.pixels.image_shape) if self.pixels else self.in_features)
        _, seen = self._run(blank)
        layers: dict[nn.Module, TreeLayer] = {layer.module: layer for layer in tree_layers(self.model)}
        return [layers[module] for module in seen if module in layers]

    @cached_property
    def stages(self) -> list[tuple[nn.Module, tuple[int, int, int]]]:
        """The modules that end a stage of a network of convolutions, and the shape of their maps."""
        chain = self.model.chain() if isinstance(self.model, Chain) else []
        steps = [step for part in chain for step in (part if isinstance(part, nn.Sequential) else [part])]
        ends, begun = [], False
        for step, after in pairwise([*steps, nn.Identity()]):
            begun = begun or isinstance(step, CONVOLUTIONS)
            if begun and not isinstance(step, POOLING) and isinstance(after, (*CONVOLUTIONS, POOLING, nn.Flatten)):
                ends.append(step)
        if not ends or self.pixels is None:
            return []
        _, seen = self._run(torch.zeros(1, math.prod(self.pixels.image_shape)), ends)
        maps = ((step, seen[step][1].shape[1:]) for step in ends if seen[step][1].dim() == 4)
        return [(step, (shape[0], shape[1], shape[2])) for step, shape in maps]

    def _given(self, x: Tensor) -> Tensor:
        """Inputs (n, pixels or features) as the model takes them."""
        given = self.pixels.to_input(x) if self.pixels else x if self.scaling is None else self.scaling(x)
        return given.to(next(self.model.parameters()).dtype)

    def _run(
        self, x: Tensor, watched: Sequence[nn.Module] = ()
    ) -> tuple[Tensor, dict[nn.Module, tuple[Tensor, Tensor]]]:
        """Outputs for inputs (n, pixels or features), and input and output of each layer, in the order of execution;
        also of other modules that are to be watched."""
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        modules = [*watched, *(layer.module for layer in tree_layers(self.model))]
        hooks = [
            module.register_forward_hook(lambda module, given, out: seen.update({module: (given[0], out)}))
            for module in modules
        ]
        try:
            return self.model(self._given(x)), seen
        finally:
            for hook in hooks:
                hook.remove()

    def pixel_contributions(self, x: Tensor, output: int) -> dict[str, Any] | None:
        """What each pixel adds to an output, against a blank image; None for a network that is not one of stages, or
        has max-pooling, which cannot be decomposed."""
        if not self.stages or self.pixels is None:
            return None
        try:
            parts = explain(self.model, self._given(x), self._given(torch.zeros_like(x)))
        except DendritreeError:
            return None
        return {
            "pixels": shorten(parts.inputs[0, output].reshape(self.pixels.shape).sum(0)),
            "total": float(parts.output[0, output]),
            "blank": float(parts.baseline[0, output]),
        }

    @cached_property
    def in_features(self) -> int:
        """Number of inputs of the model; for a model of images, the number of pixels it sees."""
        if self.pixels:
            return self.pixels.in_features
        stated = (getattr(module, "in_features", None) for module in self.model.modules())
        return next(size for size in stated if isinstance(size, int))

    # ------------------------------------------------------------------------------------------------------ structure

    def grid(self, layer: int) -> dict[str, Any]:
        """How the inputs of a layer are laid out on the page: what they are, rows, columns, and tiles of an image."""
        inputs = self.layers[layer].in_features
        if layer == 0 and self.stages and inputs % (count := self.stages[-1][1][0]) == 0:
            side = math.isqrt(inputs // count)
            sides = (side, side) if count * side**2 == inputs else (1, inputs // count)
            return {"of": "maps", **dict(zip(("tiles", "height", "width"), (count, *sides), strict=True))}
        convolutions = [module for module in self.model.modules() if isinstance(module, nn.Conv2d)]
        if layer == 0 and convolutions:
            side = math.isqrt(inputs // convolutions[-1].out_channels)
            maps = (convolutions[-1].out_channels, side, side)
            shape = self.layers[0].image_shape() or (maps if math.prod(maps) == inputs else (1, 1, inputs))
            return {"of": "features", **dict(zip(("tiles", "height", "width"), shape, strict=True))}
        if layer == 0 and inputs == self.in_features and self.pixels:
            return {"of": "pixels", **dict(zip(("tiles", "height", "width"), self.pixels.shape, strict=True))}
        width = math.ceil(math.sqrt(inputs)) if inputs > 12 else inputs  # nearly a square; the last row may be short
        of = "features" if layer == 0 and inputs == self.in_features else "neurons"
        return {"of": of, "tiles": 1, "height": -(-inputs // width), "width": width}

    @property
    def outputs(self) -> int:
        """Number of outputs of the model."""
        return self.layers[-1].neurons

    @cached_property
    def class_names(self) -> list[str]:
        """Names of the classes. A single output that is a probability represents two classes."""
        return list(self.classes) or [str(number) for number in range(max(2, self.outputs))]

    @cached_property
    def _to_probabilities(self) -> nn.Module | None:
        """The module that turns the model's output into probabilities; None if the output is a quantity."""
        last = getattr(self.model, "output", None) or getattr(getattr(self.model, "head", None), "output", None)
        if isinstance(last, nn.Sigmoid | nn.Softmax):
            return nn.Identity()
        if self.outputs == 1 and not self.classes and not isinstance(self.model, MLNBinaryClassifier):
            return None  # a logit or a regression: without class names, show the number itself
        return make_output("probabilities", self.outputs)

    @property
    def gives_probabilities(self) -> bool:
        """Whether there are classes; otherwise the output is a quantity."""
        return self._to_probabilities is not None

    def describe(self) -> dict[str, Any]:
        """Everything the page needs to know about the model, as JSON values."""
        pixels = self.pixels
        return {
            "name": self.name,
            "parameters": parameters_of(self.model),
            "classes": self.class_names if self.gives_probabilities else [],
            "notes": list(self.notes),
            "features": list(self.features),
            "target": self.target,
            "columns": self.columns.describe() if self.columns else [],
            "samples": [sample.label for sample in self.samples],
            "pixels": pixels
            and {
                "raster": pixels.raster,
                "image": pixels.image_shape,
                "shape": pixels.shape,
                "brush": round(pixels.brush, 4),
                "centers": pixels.drawn.centered,
                "text": pixels.describe(),
            },
            "stages": [dict(zip(("tiles", "height", "width"), shape, strict=True)) for _, shape in self.stages],
            "layers": [
                {
                    "name": layer.name,
                    "neurons": layer.neurons,
                    "inputs": layer.in_features,
                    "dendritic": layer.dendritic,
                    "text": layer.text,
                    "grid": self.grid(number),
                }
                for number, layer in enumerate(self.layers)
            ],
        }

    # ------------------------------------------------------------------------------------------------------- activity

    @torch.no_grad()
    def activity(self, x: Tensor, layer: int, neuron: int) -> dict[str, Any]:
        """The response to an input (1, pixels or features): in one neuron's tree, in every layer, and by class.

        `image` is what the model sees, in [0, 1]; `reads` the inputs of the neuron's layer; `dendrites` the outputs of
        its nodes, the root last; `neurons` the outputs of every layer; `classes` probabilities, `output` numbers;
        `maps` the outputs of every stage, and `why` the contributions of the pixels.
        """
        tree = self.tree(layer, neuron)
        out, seen = self._run(x, [step for step, _ in self.stages])
        values = [seen[each.module] for each in self.layers]
        reads = values[layer][0].reshape(-1).float().cpu()
        return {
            "image": shorten(self.pixels.to_unit(x) if self.pixels else x),
            "reads": shorten(reads),
            "dendrites": shorten(trace(tree, reads).values),
            "neurons": [shorten(output) for _, output in values],
            "classes": shorten(self.probabilities(out)[0]),
            "output": shorten(out),
            "maps": [shorten(seen[step][1][0, :MOST_MAPS]) for step, _ in self.stages],
            "why": self.pixel_contributions(x, neuron if layer == len(self.layers) - 1 else int(out[0].argmax())),
        }

    def probabilities(self, out: Tensor) -> Tensor:
        """Probabilities (n, classes) from the model's outputs (n, outputs); without classes for regression."""
        if self._to_probabilities is None:
            return out[:, :0]
        chances: Tensor = self._to_probabilities(out)
        return torch.cat([1 - chances, chances], dim=1) if self.outputs == 1 else chances

    @torch.no_grad()
    def quality(self, examples: Examples) -> tuple[float, str]:
        """The quality of the model on examples in the form that `activity` takes, where higher is better, and in words.

        This is the share of examples whose most probable class is correct, or the negative root mean squared error.
        """
        out, y, count = self._run(examples.x)[0].cpu(), examples.y, f"{len(examples)} test examples"
        if self.classes:
            accuracy = float((self.probabilities(out).argmax(1) == y).double().mean())
            return accuracy, f"Accuracy {accuracy:.1%} on {count}."
        error = float((out.reshape(len(y)).double() - y.reshape(len(y)).double()).square().mean().sqrt())
        return -error, f"RMSE {error:.4g} on {count}."
