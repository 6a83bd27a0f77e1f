"""Examples for the page: the data set that a model was trained on, as far as its sizes and its outputs tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch import nn

from ..data import DATASETS, Examples, load_dataset
from ..data.builtin import PAPER
from ..data.inputs import Inputs
from ..errors import MissingDataError, MissingExtraError, OptionError, ShapeError
from .exhibit import Exhibit
from .own_data import exhibit_of_inputs, exhibit_of_split
from .pixels import Pixels
from .samples import TRIED, samples_of
from .trees import tree_layers

SURE = 0.5
"""A model of this accuracy was trained on such examples: other data sets are not tried."""
PAPER_SIDE = 32
SMALLEST_IMAGE = 64
"""Inputs from which on a square number of them is taken for an image."""


def class_names(name: str) -> tuple[str, ...]:
    """The names of a data set's classes; none for a quantity.

    >>> class_names("mnist-4-9"), class_names("california-housing")
    (('4', '9'), ())
    """
    return DATASETS[name].class_names


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
    """A model to be shown, with what can be found out about its inputs.

    The image is that of its wiring or of its size. The data set is the built-in one on this machine, of that size, on
    which the model is best, with the preparation of pixels under which it is best.

    Args:
        name: of the model, for the page.
        model: a registered model.
        image: (channels, height, width); `"none"` for plain vectors; None to find out.
        data: data as `load_dataset` takes it; None to find out.
        target: the column of a table to predict.
        normalized: whether inputs were scaled as those of `load_dataset(...).scaled()`; None to find out.
        inputs: what is known of the model's data, where that was kept; what is given counts more.

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
        found = DATASETS[known].image_shape or "no images"
        raise ShapeError(f"the data must fit the model's inputs and outputs: {known} has {found}")
    return Exhibit(name, model, candidates[0], notes=["No data set of its size is on this machine."])


def _with_data(
    name: str, model: nn.Module, pixels: Pixels | None, data: str, *, must: bool
) -> tuple[float, Exhibit] | None:
    """The model with the examples of a data set, and its accuracy; None if they do not fit or are not available."""
    data_set = DATASETS[data]
    if data_set.image_shape != (pixels.image_shape if pixels else None):
        return None
    exhibit = Exhibit(name, model, pixels, classes=class_names(data))
    sizes_fit = exhibit.outputs == data_set.classes or (exhibit.outputs, data_set.classes) in ((1, 2), (1, None))
    if not sizes_fit or exhibit.gives_probabilities != (data_set.classes is not None):
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
    if not data_set.classes:
        exhibit.notes = [f"Examples: {data}."]
        return SURE, exhibit
    accuracy = exhibit.accuracy(examples.x, examples.y)
    exhibit.notes = [f"Examples: {data}. {accuracy:.1%} of {len(examples)} test examples are recognized."]
    return accuracy, exhibit


def _pixels(
    model: nn.Module, image: tuple[int, int, int] | str | None, normalized: bool | None
) -> Iterator[Pixels | None]:
    """What the model's inputs may be, the most probable first: None for a plain vector."""
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
    layers = tree_layers(model)
    if not layers:
        raise OptionError(f"a model must have dendritic or linear layers to be shown: got {model!r:.80}")
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
