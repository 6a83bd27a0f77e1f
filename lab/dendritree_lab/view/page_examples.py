"""Examples for the page: the built-in data set that fits a model's sizes and outputs, or the user's own data.

Samples and names come from the data; the scaling is the saved one, or is derived from the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from torch import Tensor, nn

from dendritree.errors import DendritreeError, MissingDataError, MissingExtraError, OptionError, ShapeError
from dendritree.training.examples import Examples

from ..data import DATASETS, Scaling, load_dataset
from ..data.builtin import PAPER
from ..data.inputs import Inputs
from ..data.split import DataSplit
from .column_inputs import Columns
from .exhibit import TRIED, Exhibit, samples_of
from .pixels import Pixels, measure_strokes
from .trees import tree_layers

SURE = 0.5
"""From this accuracy on, the model was trained on such examples, and no other data sets are tried."""
PAPER_SIDE = 32
SMALLEST_IMAGE = 64
"""Minimum number of inputs for which a square number of them is treated as an image."""


@lru_cache
def examples_of(name: str) -> tuple[Examples, tuple[str, ...]]:
    """The first test examples of a data set on this machine, and the names of its columns."""
    split = load_dataset(name, download=False)
    return Examples(split.test.x[:TRIED].clone(), split.test.y[:TRIED].clone()), split.features


def exhibit_of(
    name: str,
    model: nn.Module,
    *,
    image: tuple[int, int, int] | str | None = None,
    data: Any = None,
    target: str | None = None,
    normalized: bool | None = None,
    inputs: Inputs | None = None,
) -> Exhibit:
    """A model as an exhibit, with what can be inferred about its inputs.

    The image shape comes from its wiring or its size. The data set is the built-in one of that size on this machine on
    which the model is best, with the preparation of pixels under which it is best.

    Args:
        name: name of the model on the page.
        model: a registered model.
        image: (channels, height, width); `"none"` for plain vectors; None to select automatically.
        data: data in any form that `load_dataset` takes; None to select automatically.
        target: the column of a table to predict.
        normalized: whether inputs were scaled as in `load_dataset(...).scaled()`; None to select automatically.
        inputs: the saved description of the model's data, if there is one; explicit arguments take precedence.

    >>> from dendritree import MLNClassifier
    >>> exhibit_of("trees", MLNClassifier(64, 10, branching=8)).pixels.image_shape
    (1, 8, 8)
    """
    if data is None and inputs is not None and inputs.data not in DATASETS:
        return exhibit_of_inputs(name, model, inputs)
    if data is not None and not (isinstance(data, str) and data in DATASETS):
        shape = image if isinstance(image, tuple) else None if inputs is None else inputs.image
        split = load_dataset(data, target=target, image=shape)
        ways = (False, True) if normalized is None else (normalized,)
        scalings = [inputs.scaling] if inputs else [split.scaled().scaling if way else None for way in ways]
        return exhibit_of_split(name, model, split, scalings)
    if inputs is not None:
        data = inputs.data if data is None else data
        normalized = inputs.scaling is not None if normalized is None else normalized
    known = None if data is None else str(data)
    candidates = list(_pixels(model, image, normalized))
    best, accuracy = None, -1.0
    for each in [known] if known else DATASETS:
        if accuracy >= SURE:
            break
        for pixels in candidates:
            fitting = _with_data(name, model, pixels, each, must=bool(known))
            if fitting and fitting[0] > accuracy:
                accuracy, best = fitting
    if best:
        return best
    if known:
        images = DATASETS[known].image_shape or "no images"
        raise ShapeError(f"the data must fit the model's inputs and outputs: {known} has {images}")
    return Exhibit(name, model, candidates[0], notes=["No data set of its size is on this machine."])


def _with_data(
    name: str, model: nn.Module, pixels: Pixels | None, data: str, *, must: bool
) -> tuple[float, Exhibit] | None:
    """The model with the examples of a data set, and its accuracy; None if they do not fit or are not available."""
    data_set = DATASETS[data]
    if data_set.image_shape != (pixels.image_shape if pixels else None):
        return None
    exhibit = Exhibit(name, model, pixels, classes=data_set.class_names)
    if not _outputs_fit(exhibit, data_set.classes) or exhibit.gives_probabilities != (data_set.classes is not None):
        return None
    try:
        examples, features = examples_of(data)
    except (MissingDataError, MissingExtraError):
        if must:
            raise
        return None
    if pixels is None and examples.x.shape[1] != exhibit.in_features:
        return None
    exhibit.features, exhibit.samples = features, samples_of(examples, exhibit.classes)
    if pixels is None:
        exhibit.columns = _columns(examples.x, features)
    if not data_set.classes:
        exhibit.notes = [f"Examples: {data}."]
        return SURE, exhibit
    accuracy, note = exhibit.quality(examples)
    exhibit.notes = [f"Examples: {data}. {note}"]
    return accuracy, exhibit


def _pixels(
    model: nn.Module, image: tuple[int, int, int] | str | None, normalized: bool | None
) -> Iterator[Pixels | None]:
    """The possible forms of the model's inputs, most likely first: None for a plain vector."""
    shape, as_image = _shape(model, image)
    if shape is None:
        yield None
        return
    paper = shape == (1, PAPER_SIDE, PAPER_SIDE)
    ways = (True, False) if paper else (False, True)  # only the paper's images are enlarged, and they are normalized
    for way in ways if normalized is None else (normalized,):
        yield Pixels((1, 28, 28) if paper else shape, PAPER if way else None, PAPER_SIDE if paper else None, as_image)


def _shape(model: nn.Module, image: tuple[int, int, int] | str | None) -> tuple[tuple[int, int, int] | None, bool]:
    """(channels, height, width) of a model's inputs, None for vectors; and whether it takes them in that shape."""
    own: tuple[int, int, int] | None = getattr(model, "input_shape", None)
    if own is not None:
        if image not in (None, own):
            raise OptionError(f"image must be that of the model, {'x'.join(map(str, own))}: got {image}")
        return own, True
    pixels: tuple[int, int, int] | None = getattr(model, "image_shape", None)
    if pixels is not None and image in (None, pixels):
        return pixels, False
    layers = tree_layers(model)
    if not layers:
        raise OptionError(f"view shows dendritic and linear layers; the model has none: {model!r:.80}")
    inputs = layers[0].in_features
    if isinstance(image, tuple):
        if math.prod(image) != inputs:
            raise ShapeError(f"image must have as many pixels as the model has inputs, {inputs}: got {image}")
        return image, False
    if image is not None:
        return None, False
    side = math.isqrt(inputs)
    square = (1, side, side) if inputs >= SMALLEST_IMAGE else None
    shapes = [layers[0].image_shape(), *(each.image_shape for each in DATASETS.values()), square]
    return next((shape for shape in shapes if shape and math.prod(shape) == inputs), None), False


# ------------------------------------------------------------------------------------------------- the user's own data


def exhibit_of_inputs(name: str, model: nn.Module, inputs: Inputs) -> Exhibit:
    """A model with the saved description of its data, and with samples if the data still exists."""
    reason = "the data was in memory"
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
        notes=[f"No samples: {reason}."],
    )


def exhibit_of_split(name: str, model: nn.Module, split: DataSplit, scalings: Sequence[Scaling | None]) -> Exhibit:
    """A model with examples of a split, scaled with the one of several scalings under which it is best.

    >>> from dendritree import MLNClassifier
    >>> import numpy
    >>> split = load_dataset((numpy.random.rand(30, 4, 4), ["cat", "dog", "cow"] * 10))
    >>> exhibit = exhibit_of_split("net", MLNClassifier(16, 3, branching=4), split, [None])
    >>> exhibit.class_names, exhibit.samples[0].label
    (['cat', 'cow', 'dog'], 'cat')
    """
    return max((_with_split(name, model, split, scaling) for scaling in scalings), key=itemgetter(0))[1]


def _with_split(name: str, model: nn.Module, split: DataSplit, scaling: Scaling | None) -> tuple[float, Exhibit]:
    """The quality of the model on examples of a split with one scaling, and the exhibit with these examples."""
    shape, examples, pixels = split.image_shape, split.test.select(slice(0, TRIED)), None
    if shape is not None:
        x = split.train.x[:TRIED]
        low, high = (0.0, 1.0) if 0 <= x.min() <= x.max() <= 1 else (float(x.min()), float(x.max()))
        pixels = Pixels(shape, scaling, as_image=hasattr(model, "input_shape"), span=(low, max(high, low + 1e-6)))
        pixels = replace(pixels, strokes=measure_strokes(pixels.of_data(x).reshape(-1, *shape).numpy()))
        examples = Examples(pixels.of_data(examples.x), examples.y)
    exhibit = Exhibit(name, model, pixels, classes=split.classes, features=split.features, scaling=scaling)
    _check_sizes(exhibit, split)
    if pixels is None:
        exhibit.columns = _columns(split.train.x, split.features)
    exhibit.samples = samples_of(examples, split.classes)
    quality, note = exhibit.quality(examples)
    exhibit.notes = [f"Examples: {split.name}. {note}"]
    return quality, exhibit


def _columns(x: Tensor, features: Sequence[str]) -> Columns:
    """Sliders from the smallest to the largest value of each column in the rows, initially at their medians."""
    return Columns.of_inputs(features, x.median(0).values, x.amin(0), x.amax(0))


def _check_sizes(exhibit: Exhibit, split: DataSplit) -> None:
    inputs = math.prod(split.train.x.shape[1:])
    if not _outputs_fit(exhibit, len(split.classes) or None) or exhibit.in_features != inputs:
        kind = f"{len(split.classes)} classes" if split.classes else "a quantity"
        raise ShapeError(
            f"the data must fit the model: {split.name} has {inputs} inputs and {kind}, "
            f"the model {exhibit.in_features} inputs and {exhibit.outputs} outputs"
        )


def _outputs_fit(exhibit: Exhibit, classes: int | None) -> bool:
    """Whether a model has an output per class; one is enough for two classes or a quantity."""
    return exhibit.outputs == classes or (exhibit.outputs == 1 and classes in (2, None))
