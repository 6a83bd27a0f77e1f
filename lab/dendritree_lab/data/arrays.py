"""Examples in arrays: numbers or images in any common layout, split into parts; .npz and .npy files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import FormatError, OptionError, ShapeError
from dendritree.training.examples import Examples, cut

from .labels import check_labels, read_labels
from .split import DataSplit

Array = NDArray[Any]
Parts = dict[str, tuple[Array, Array]]
"""x and y by `train`, `val` and `test`; `train` is always present."""
GRAY, COLOR, COLOR_ALPHA = 1, 3, 4
FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
"""The lightest pixel of integer images, which are scaled to 0 to 1."""
X_NAMES, Y_NAMES = ("x", "images", "data", "inputs"), ("y", "labels", "targets")
PART_NAMES = {"": "train", "train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
OTHERS = {"class_names": "class_names", "classes": "class_names", "image_shape": "image_shape", "features": "features"}
"""What a file may contain besides x and y."""


def image_layout(shape: Sequence[int]) -> tuple[tuple[int, int, int] | None, bool]:
    """(channels, height, width) of examples of a shape, and whether the channels are last; None for rows of numbers.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((8,))
    (((1, 28, 28), False), ((3, 32, 32), True), ((3, 32, 32), False), (None, False))
    """
    match tuple(shape):
        case (_,):
            return None, False
        case (height, width):
            return (1, height, width), False
        case (channels, height, width) if channels in (GRAY, COLOR):
            return (channels, height, width), False
        case (height, width, channels) if channels in (GRAY, COLOR, COLOR_ALPHA):
            return (channels, height, width), True
        case (channels, height, width) if channels == COLOR_ALPHA:
            return (channels, height, width), False
    raise ShapeError(
        "an example must be a row of numbers or an image of height x width, with 1, 3 or 4 channels first or last: got "
        f"shape {tuple(shape)}"
    )


def read_inputs(x: Array, image_shape: tuple[int, int, int] | None = None) -> tuple[Array, Any]:
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
            raise ShapeError(
                f"image must have as many pixels as an example has numbers: got {image_shape}, x {x.shape}"
            )
        shape = image_shape
    full = FULL.get(x.dtype, 1) if shape is not None else 1
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(x).reshape(len(x), -1).astype(np.float32)
    if full > 1:
        rows /= np.float32(full)
    if not (finite := np.isfinite(rows).all(1)).all():
        bad = int(np.flatnonzero(~finite)[0])
        raise OptionError(
            f"x must be finite: example {bad} has NaN, infinity or a number beyond float32"
            f" ({int((~finite).sum()):,} of {len(rows):,} have)"
        )
    return rows, shape


def split_arrays(
    parts: Parts,
    *,
    names: Sequence[str] = (),
    image_shape: tuple[int, int, int] | None = None,
    seed: int = 0,
    features: Sequence[str] = (),
    name: str = "",
) -> DataSplit:
    """The split of examples in arrays; missing parts are split off the training examples, a fifth each.

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
    ('30 examples to train on, 10 for validation and 10 for the test, cut at random with seed 0',)
    """
    for part, (x, y) in parts.items():
        if not x.ndim or not y.ndim or len(x) != len(y):
            raise ShapeError(f"{part} must have one y for each x: got x {x.shape}, y {y.shape}")
    read = {part: read_inputs(x, image_shape) for part, (x, _) in parts.items()}
    shapes = {part: (shape or rows.shape[1:]) for part, (rows, shape) in read.items()}
    if len(set(shapes.values())) > 1:
        raise ShapeError(f"all examples must have one shape: got {', '.join(f'{p} {s}' for p, s in shapes.items())}")
    labels = read_labels(np.concatenate([y for _, y in parts.values()]), names)
    ends = np.cumsum([0, *(len(rows) for rows, _ in read.values())])
    y_of = {part: labels.y[start:end] for part, start, end in zip(read, ends[:-1], ends[1:], strict=True)}
    absent = [part for part in ("val", "test") if part not in parts]
    check_labels(labels, least=1 + len(absent), trained=y_of["train"])
    rows = read["train"][0]
    groups = y_of["train"] if labels.classes else np.zeros(len(rows), np.int64)
    if len(rows) < 1 + len(absent):
        raise OptionError(f"there must be an example for each part: got {len(rows)}")
    places = cut(groups, held_out=len(absent), seed=seed) if absent else (np.arange(len(rows)),)
    found = {part: (rows[rest], y_of["train"][rest]) for part, rest in zip(("train", *absent), places, strict=True)}
    found |= {part: (read[part][0], y_of[part]) for part in read if part != "train"}
    examples = [Examples(*map(torch.from_numpy, found[part])) for part in ("train", "val", "test")]
    return DataSplit(
        *examples,
        features=tuple(features),
        image_shape=read["train"][1],
        classes=labels.classes,
        name=name,
        notes=(how_cut([len(part) for part in examples], absent, seed),),
    )


def how_cut(sizes: Sequence[int], absent: Sequence[str], seed: int) -> str:
    """The sizes of the parts and where they come from, in words."""
    train, val, test = sizes
    text = f"{train:,} examples to train on, {val:,} for validation and {test:,} for the test"
    match list(absent):
        case []:
            return f"{text}, as given"
        case ["val"]:
            return f"{text}; the test examples are those given, the others were cut at random with seed {seed}"
        case ["test"]:
            return f"{text}; the validation examples are those given, the others were cut at random with seed {seed}"
    return f"{text}, cut at random with seed {seed}"


# -------------------------------------------------------------------------------------------------------------- files


def place_of(name: str) -> tuple[str, str] | None:
    """The part and the array (x or y) that a key in a file, or the name of a .npy file, denotes; None for others.

    >>> place_of("x"), place_of("X_train"), place_of("test_labels"), place_of("notes")
    (('train', 'x'), ('train', 'x'), ('test', 'y'), None)
    """
    words = re.split(r"[_\-. ]+", name.lower())
    if len(words) > 2:
        return None
    array = next((kind for kind, known in (("x", X_NAMES), ("y", Y_NAMES)) for word in words if word in known), None)
    rest = [word for word in words if word not in (*X_NAMES, *Y_NAMES)]
    part = PART_NAMES.get(rest[0] if rest else "")
    return None if array is None or part is None or len(rest) == len(words) else (part, array)


def parts_of(arrays: Mapping[str, Any], where: str) -> tuple[Parts, dict[str, Any]]:
    """The parts among named arrays, and other entries: `class_names`, `image_shape`, `features`."""
    found: dict[str, dict[str, Array]] = {}
    rest: dict[str, Any] = {}
    for key, value in arrays.items():
        if key.lower() in OTHERS:
            rest[OTHERS[key.lower()]] = value
        elif (place := place_of(key)) is not None:
            found.setdefault(place[0], {})[place[1]] = np.asarray(value)
    lacking = [f"{array} of {part}" for part, pair in found.items() for array in ("x", "y") if array not in pair]
    if "train" not in found or lacking:
        lacks = lacking[0] if lacking else "x and y"
        raise FormatError(
            f"arrays must be named x and y, and x_test, y_test (or val) if there are more: {where} lacks {lacks}, "
            f"it has {', '.join(arrays) or 'nothing'}"
        )
    return {part: (pair["x"], pair["y"]) for part, pair in found.items()}, rest


def split_named_arrays(
    arrays: Mapping[str, Any],
    where: str,
    *,
    image_shape: tuple[int, int, int] | None = None,
    seed: int = 0,
    name: str = "",
) -> DataSplit:
    """The split of named arrays, as in .npz files: x, y, x_test, class_names, image_shape, features.

    >>> arrays = {"x": np.random.rand(20, 3), "y": np.arange(20) % 2, "class_names": ["no", "yes"]}
    >>> split_named_arrays(arrays, "a mapping").classes
    ('no', 'yes')
    """
    parts, rest = parts_of(arrays, where)
    given = rest.get("image_shape")
    shape = image_shape or (None if given is None else tuple(int(size) for size in np.asarray(given).reshape(-1)))
    if shape is not None and len(shape) != 3:
        raise FormatError(f"image_shape must be channels, height and width: got {shape}")
    names, features = (tuple(map(str, np.asarray(rest.get(key, ())).tolist())) for key in ("class_names", "features"))
    return split_arrays(parts, names=names, image_shape=shape, seed=seed, features=features, name=name)


def read_array_file(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, or of a .npy file and those next to it that belong to it, such as y.npy to x.npy."""
    files = [path]
    if path.suffix == ".npy":  # and all others of the data set, named x, y, x_train, y_test and so on
        files = sorted({path, *(each for each in path.parent.glob("*.npy") if place_of(each.stem))})
    found: dict[str, Array] = {}
    for file in files:
        if not file.is_file():  # opening a pipe would block
            raise FormatError(f"{file} must be a whole file of numpy.savez or numpy.save: it is not a file")
        try:
            with file.open("rb") as stream:
                loaded = np.load(stream, allow_pickle=False)
                found |= {file.stem: loaded} if file.suffix == ".npy" else {key: loaded[key] for key in loaded.files}
        except MemoryError:
            raise
        except Exception as error:  # NumPy, zipfile and zlib raise different errors for a damaged file
            objects = "pickle" in str(error) and file.stat().st_size > 0
            reason = "Python objects, such as arrays of several sizes, cannot be read" if objects else str(error)
            raise FormatError(
                f"{file} must be a whole file of numpy.savez or numpy.save: {reason.partition(chr(10))[0]:.200}"
            ) from None
    return found
