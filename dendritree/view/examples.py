"""Examples for the page: the data set that a model was trained on, as far as its sizes and its outputs tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torch import nn

from ..data import DATASETS, Examples, load_dataset
from ..errors import MissingDataError, MissingExtraError, OptionError, ShapeError, check_one_of
from .exhibit import Exhibit, Sample
from .pixels import Pixels
from .trees import tree_layers

TRIED = 500
"""Test examples by which a data set and its pixels are recognized: enough to tell, and evaluated in milliseconds."""
SURE = 0.5
"""A model of this accuracy was trained on such examples: other data sets are not tried."""
ROUNDS = 4
MOST_SAMPLES = 40
PAPER_SIDE = 32
SMALLEST_IMAGE = 64
"""Inputs from which on a square number of them is taken for an image."""

NAMES = {
    "mnist-4-9": ("4", "9"),
    "fashion-mnist": (
        *("T-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "trainer", "bag", "ankle boot"),
    ),
    "mnist-pairs": tuple(f"{number:02}" for number in range(100)),
    "adult": ("up to $50,000", "over $50,000"),
}


def class_names(name: str) -> tuple[str, ...]:
    """The names of a data set's classes; none for a quantity.

    >>> class_names("mnist-4-9"), class_names("california-housing")
    (('4', '9'), ())
    """
    return NAMES.get(name) or tuple(str(number) for number in range(DATASETS[name].classes or 0))


@lru_cache
def examples_of(name: str) -> tuple[Examples, tuple[str, ...]]:
    """The first test examples of a data set on this machine, and the names of its columns."""
    split = load_dataset(name, download=False)
    return Examples(split.test.x[:TRIED].clone(), split.test.y[:TRIED].clone()), split.features


def samples_of(examples: Examples, names: Sequence[str]) -> list[Sample]:
    """Some examples of each class in turn; without classes, the first ones.

    >>> import torch
    >>> examples = Examples(torch.rand(4, 2), torch.tensor([1, 1, 0, 0]))
    >>> [sample.label for sample in samples_of(examples, ("no", "yes"))]
    ['no', 'yes', 'no', 'yes']
    """
    if not names:
        return [Sample(x[None], f"{float(y):.2f}") for x, y in zip(examples.x[:20], examples.y, strict=False)]
    of_class = [(examples.y == number).nonzero().flatten().tolist() for number in range(len(names))]
    rounds = [[found[turn] for found in of_class if turn < len(found)] for turn in range(ROUNDS)]
    chosen = [place for each in rounds for place in each][:MOST_SAMPLES]
    return [Sample(examples.x[place][None], names[int(examples.y[place])]) for place in chosen]


def exhibit_of(
    name: str,
    model: nn.Module,
    *,
    image: tuple[int, int, int] | str | None = None,
    data: str | None = None,
    normalized: bool | None = None,
) -> Exhibit:
    """A model to be shown, with what can be found out about its inputs.

    The image is that of its wiring or of its size. The data set is the one on this machine, of that size, on which the
    model is best, with the preparation of pixels under which it is best.

    Args:
        name: of the model, for the page.
        model: a registered model.
        image: (channels, height, width); `"none"` for plain vectors; None to find out.
        data: name of a data set; None to find out.
        normalized: whether pixels were normalized as in the paper; None to find out.

    >>> from dendritree import MLNClassifier
    >>> exhibit_of("trees", MLNClassifier(64, 10, branching=8)).pixels.image_shape
    (1, 8, 8)
    """
    known = None if data is None else check_one_of("data", data, DATASETS)
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
        yield Pixels((1, 28, 28) if paper else shape, way, PAPER_SIDE if paper else None, as_image)


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
