"""Examples in arrays: numbers or images in any common layout, and labels that are classes or a quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import OptionError, ShapeError
from dendritree.training.examples import Examples, cut

from .split import DataSplit

Array = NDArray[Any]
ImageShape = tuple[int, int, int]
Parts = dict[str, tuple[Array, Array]]
"""x and y by `train`, `val` and `test`; `train` is always present."""
FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
"""The lightest pixel of integer images, which are scaled to 0 to 1."""
PART_NAMES = {"": "train", "train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
FEW_NUMBERS = 10
"""Integers stored as floats, or in a column of a table, are classes if they have at most this many distinct values."""


def image_layout(shape: Sequence[int]) -> tuple[ImageShape | None, bool]:
    """(channels, height, width) of examples of a shape, and whether the channels are last; None for rows of numbers.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((8,))
    (((1, 28, 28), False), ((3, 32, 32), True), ((3, 32, 32), False), (None, False))
    """
    match tuple(shape):
        case (_,):
            return None, False
        case (height, width):
            return (1, height, width), False
        case (1 | 3 as channels, height, width):
            return (channels, height, width), False
        case (height, width, 1 | 3 | 4 as channels):
            return (channels, height, width), True
        case (4, height, width):
            return (4, height, width), False
    raise ShapeError(
        "an example must be a row of numbers or an image of height x width, with 1, 3 or 4 channels first or last: got "
        f"shape {tuple(shape)}"
    )


def read_inputs(x: Array, image_shape: ImageShape | None = None) -> tuple[Array, ImageShape | None]:
    """Rows of float32, and the shape of the image in each; integer pixels are scaled to 0 to 1.

    Args:
        x: one example per row: numbers, or an image.
        image_shape: (channels, height, width) if rows of numbers are images.

    >>> rows, shape = read_inputs(np.full((5, 4, 6), 255, np.uint8))
    >>> rows.shape, float(rows.max()), shape
    ((5, 24), 1.0, (1, 4, 6))
    """
    if x.dtype.kind not in "biuf":
        raise OptionError(f"x must be numbers: got {x.dtype}")
    if x.ndim < 2 or not x.size:
        raise ShapeError(f"x must have examples of numbers, one per row: got shape {x.shape}")
    shape, channels_last = image_layout(x.shape[1:])
    if channels_last:
        x = np.moveaxis(x, -1, 1)
    if image_shape is not None:
        if math.prod(image_shape) != math.prod(x.shape[1:]):
            raise ShapeError(f"image must have as many pixels as an example: got {image_shape}, x {x.shape}")
        shape = image_shape
    full = FULL.get(x.dtype, 1) if shape is not None else 1
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(x).reshape(len(x), -1).astype(np.float32)
    if full > 1:
        rows /= np.float32(full)
    if len(bad := np.flatnonzero(~np.isfinite(rows).all(1))):
        raise OptionError(
            f"x must be finite: example {bad[0]} has NaN, infinity or a number beyond float32"
            f" ({len(bad):,} of {len(rows):,} examples do)"
        )
    return rows, shape


def split_arrays(
    parts: Parts,
    *,
    names: Sequence[str] = (),
    image_shape: ImageShape | None = None,
    seed: int = 0,
    features: Sequence[str] = (),
    name: str = "",
) -> DataSplit:
    """Make a split from arrays; missing parts are split off the training examples, a fifth each.

    Args:
        parts: x and y of `train`, and of `val` and `test` if there are any.
        names: names of the classes, if y numbers them from 0.
        image_shape: (channels, height, width) if rows of x are images and the shape of x does not show it.
        seed: seed of the split.
        features: names of the columns of x.
        name: the name of the data in reports.

    >>> split = split_arrays({"train": (np.random.rand(50, 8, 8), np.arange(50) % 2)})
    >>> split.image_shape, split.classes, [len(part) for part in split.parts]
    ((1, 8, 8), ('0', '1'), [30, 10, 10])
    >>> split.notes
    ('30 training, 10 validation and 10 test examples, split at random with seed 0',)
    """
    for part, (x, y) in parts.items():
        if not x.ndim or not y.ndim or len(x) != len(y):
            raise ShapeError(f"{part} must have one y per x: got x {x.shape}, y {y.shape}")
    inputs = {part: read_inputs(x, image_shape) for part, (x, _) in parts.items()}
    shapes = {part: (shape or rows.shape[1:]) for part, (rows, shape) in inputs.items()}
    if len(set(shapes.values())) > 1:
        raise ShapeError(f"all examples must have one shape: got {', '.join(f'{p} {s}' for p, s in shapes.items())}")
    labels = read_labels(np.concatenate([y for _, y in parts.values()]), names)
    ends = np.cumsum([len(rows) for rows, _ in inputs.values()])
    targets = dict(zip(inputs, np.split(labels.y, ends[:-1]), strict=True))
    absent = [part for part in ("val", "test") if part not in parts]
    check_labels(labels, least=1 + len(absent), trained=targets["train"])
    x, y = inputs["train"][0], targets["train"]
    if len(x) < 1 + len(absent):
        raise OptionError(f"there must be at least one example per part: got {len(x)}")
    groups = y if labels.classes else np.zeros(len(x), np.int64)
    pieces = cut(groups, held_out=len(absent), seed=seed) if absent else (np.arange(len(x)),)
    arrays = {part: (rows, targets[part]) for part, (rows, _) in inputs.items()}
    arrays |= {part: (x[piece], y[piece]) for part, piece in zip(("train", *absent), pieces, strict=True)}
    examples = [Examples(*map(torch.from_numpy, arrays[part])) for part in ("train", "val", "test")]
    return DataSplit(
        *examples,
        features=tuple(features),
        image_shape=inputs["train"][1],
        classes=labels.classes,
        name=name,
        notes=(describe_parts([len(part) for part in examples], absent, seed),),
    )


def describe_parts(sizes: Sequence[int], absent: Sequence[str], seed: int) -> str:
    """The sizes of the parts and where they come from, in words."""
    train, val, test = sizes
    text = f"{train:,} training, {val:,} validation and {test:,} test examples"
    if not absent:
        return f"{text}, as given"
    if len(absent) == 2:
        return f"{text}, split at random with seed {seed}"
    given = "test" if absent[0] == "val" else "validation"
    return f"{text}; the {given} examples are as given, the others were split at random with seed {seed}"


# ------------------------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True)
class Labels:
    """Class numbers from 0 (int64) with the names of the classes; or quantities (float32), without names."""

    y: Array
    classes: tuple[str, ...] = ()


def read_labels(y: Array, names: Sequence[str] = ()) -> Labels:
    """Decide what labels mean: strings, booleans and integers are classes; floats are a quantity, unless few and whole.

    Args:
        y: one label per example.
        names: names of the classes, if y numbers them from 0; by default the labels themselves.

    >>> read_labels(np.array(["dog", "cat", "dog"]))
    Labels(y=array([1, 0, 1]), classes=('cat', 'dog'))
    >>> read_labels(np.array([0.5, 1.25])).classes
    ()
    """
    y = y.reshape(len(y)) if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ShapeError(f"y must be one label per example (argmax(1) of one-hot rows): got shape {y.shape}")
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise OptionError(f"y must be numbers or strings: got {y.dtype}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise OptionError(f"y must be finite: got {y[row]} for example {row}")
    if names:
        bad = y if y.dtype.kind == "U" else y[(y != np.round(y)) | (y < 0) | (y >= len(names))]
        if len(bad):
            raise OptionError(f"y must number the {len(names)} classes from 0 to {len(names) - 1}: got {bad[0]}")
        return Labels(y.astype(np.int64), tuple(map(str, names)))
    if y.dtype.kind == "f":
        values = np.unique(y)
        if len(values) > FEW_NUMBERS or not (values == np.round(values)).all():
            return Labels(y.astype(np.float32))
        y = y.astype(np.int64)
    values, codes = np.unique(y, return_inverse=True)
    return Labels(codes.astype(np.int64), tuple(map(str, values.tolist())))


def check_labels(labels: Labels, *, least: int, trained: Array) -> None:
    """Raise for labels that cannot be learned: a single class or value, or classes with too few examples.

    Args:
        labels: labels of all examples.
        least: minimum number of examples per class, one for each part.
        trained: labels of the examples that are split into parts.
    """
    if not labels.classes:
        if len(np.unique(trained)) < 2:
            raise OptionError(f"y must have different values: it is {trained[0]:g} in every example")
        return
    if len(labels.classes) < 2:
        raise OptionError(f"there must be two classes or more: all examples are {labels.classes[0]!r}")
    counts = np.bincount(trained, minlength=len(labels.classes))
    few = np.flatnonzero(counts < least)
    if len(few):
        shown = ", ".join(f"{labels.classes[number]!r} has {counts[number]}" for number in few[:3])
        hint = "; a quantity must be given as floats" if len(few) > len(labels.classes) // 2 else ""
        rule = f"each class must have at least {least} example{'s' * (least > 1)} to train, validate and test with"
        raise OptionError(f"{rule}: {shown}{', ...' * (len(few) > 3)}{hint}")
