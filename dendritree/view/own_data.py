"""A model with the user's own data: samples and names from the data, scaling from what was kept or from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from ..data import Examples, Scaling, Split, load_dataset
from ..data.inputs import Inputs
from ..errors import DendritreeError, ShapeError
from .exhibit import Exhibit
from .pixels import Pixels
from .samples import TRIED, samples_of
from .strokes import measure_strokes


def exhibit_of_inputs(name: str, model: nn.Module, inputs: Inputs) -> Exhibit:
    """A model with what was kept of its data, and with samples if the data is still there."""
    reason = "it was in memory"
    if inputs.data is not None:
        try:
            split = load_dataset(inputs.data, target=inputs.target, image=inputs.image, download=False)
            return exhibit_of_split(name, model, split, [inputs.scaling])
        except DendritreeError as error:
            reason = str(error)
    shape = inputs.image_shape
    return Exhibit(
        name,
        model,
        None if shape is None else Pixels(shape, inputs.scaling, as_image=hasattr(model, "input_shape")),
        classes=inputs.classes,
        features=inputs.features,
        scaling=inputs.scaling if shape is None else None,
        notes=[f"No samples of its data: {reason}."],
    )


def exhibit_of_split(name: str, model: nn.Module, split: Split, scalings: Sequence[Scaling | None]) -> Exhibit:
    """A model with examples of a split, scaled in the one of several ways under which it is best.

    >>> from dendritree import MLNClassifier
    >>> import numpy
    >>> split = load_dataset((numpy.random.rand(30, 4, 4), ["cat", "dog", "cow"] * 10))
    >>> exhibit = exhibit_of_split("net", MLNClassifier(16, 3, branching=4), split, [None])
    >>> exhibit.class_names, exhibit.samples[0].label
    (['cat', 'cow', 'dog'], 'cat')
    """
    found = [_exhibit(name, model, split, scaling) for scaling in scalings]
    examples = _first(split)
    quality = [_quality(exhibit, examples) for exhibit in found]
    best, (_, note) = max(zip(found, quality, strict=True), key=lambda pair: pair[1][0])
    best.notes = [f"Examples: {split.name}. {note}"]
    return best


def _first(split: Split) -> Examples:
    return split.test.select(slice(0, TRIED))


def _exhibit(name: str, model: nn.Module, split: Split, scaling: Scaling | None) -> Exhibit:
    shape, examples, pixels = split.image_shape, _first(split), None
    if shape is not None:
        x = split.train.x[:TRIED]
        low, high = (0.0, 1.0) if 0 <= x.min() <= x.max() <= 1 else (float(x.min()), float(x.max()))
        pixels = Pixels(shape, scaling, as_image=hasattr(model, "input_shape"), span=(low, max(high, low + 1e-6)))
        pixels = replace(pixels, strokes=measure_strokes(pixels.of_data(x).reshape(-1, *shape).numpy()))
    exhibit = Exhibit(name, model, pixels, classes=split.classes, features=split.features, scaling=scaling)
    _check_sizes(exhibit, split)
    shown = examples if pixels is None else Examples(pixels.of_data(examples.x), examples.y)
    exhibit.samples = samples_of(shown, split.classes)
    return exhibit


def _check_sizes(exhibit: Exhibit, split: Split) -> None:
    inputs = math.prod(split.train.x.shape[1:])
    layers = exhibit.model
    stated = next((size for m in layers.modules() if isinstance(size := getattr(m, "in_features", None), int)), inputs)
    outputs = len(split.classes) if len(split.classes) > 2 else 1
    fits = exhibit.outputs == outputs or (exhibit.outputs == 2 and len(split.classes) == 2)
    if not fits or (not exhibit.pixels and stated != inputs):
        kind = f"{len(split.classes)} classes" if split.classes else "a quantity"
        raise ShapeError(
            f"the data must fit the model: {split.name} has {inputs} inputs and {kind}, the model {stated} inputs and "
            f"{exhibit.outputs} outputs"
        )


def _quality(exhibit: Exhibit, examples: Examples) -> tuple[float, str]:
    """More is better; and how good it is, in words."""
    x = exhibit.pixels.of_data(examples.x) if exhibit.pixels else examples.x
    if exhibit.classes:
        accuracy = exhibit.accuracy(x, examples.y)
        return accuracy, f"{accuracy:.1%} of {len(examples)} test examples are recognized."
    error = exhibit.error(x, examples.y)
    return -error, f"RMSE {error:.4g} on {len(examples)} test examples."
