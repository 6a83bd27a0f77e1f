"""Examples in arrays: numbers or images in any common layout, in Python objects or .npz and .npy files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from dendritree.errors import FormatError, OptionError, ShapeError
from dendritree.training.examples import PARTS, Examples, arrays_of, as_array, cut

from .labels import check_labels, read_labels
from .split import DataSplit

Array = NDArray[Any]
ImageShape = tuple[int, int, int]
Parts = dict[str, tuple[Array, Array]]
"""x and y by `train`, `val` and `test`; `train` is always present."""
FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
"""The lightest pixel of integer images, which are scaled to 0 to 1."""
ARRAY_NAMES = dict.fromkeys(("x", "images", "data", "inputs"), "x") | dict.fromkeys(("y", "labels", "targets"), "y")
PART_NAMES = {"": "train", "train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
OTHERS = {"class_names": "class_names", "classes": "class_names", "image_shape": "image_shape", "features": "features"}
"""What a file may contain besides x and y."""


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
            f" ({len(bad):,} of {len(rows):,} have)"
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
        raise OptionError(f"there must be an example for each part: got {len(x)}")
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
    text = f"{train:,} examples to train on, {val:,} for validation and {test:,} for the test"
    if not absent:
        return f"{text}, as given"
    if len(absent) == 2:
        return f"{text}, cut at random with seed {seed}"
    given = "test" if absent[0] == "val" else "validation"
    return f"{text}; the {given} examples are those given, the others were cut at random with seed {seed}"


def split_object(data: Any, *, image_shape: ImageShape | None = None, seed: int = 0, name: str = "") -> DataSplit:
    """The split of a pair (x, y), a dataset, a loader, or a mapping of parts or of named arrays.

    >>> from torch.utils.data import TensorDataset
    >>> x, y = torch.rand(40, 3, 8, 8), torch.arange(40) % 2
    >>> split_object(TensorDataset(x, y)).image_shape
    (3, 8, 8)
    >>> parts = split_object({"train": (x, y), "test": (x.numpy()[:5], [0, 1, 0, 1, 0])}).parts
    >>> [len(part) for part in parts]
    [32, 8, 5]
    """
    if isinstance(data, Mapping) and PARTS.isdisjoint(data):
        arrays = {key: as_array(value, key) for key, value in data.items()}
        return split_named_arrays(arrays, "the mapping", image_shape=image_shape, seed=seed, name=name)
    parts = data if isinstance(data, Mapping) else {"train": data}
    if not set(parts) <= PARTS or "train" not in parts:
        raise OptionError(f"parts must be train, and val or test: got {', '.join(map(str, parts))}")
    pairs = {part: arrays_of(examples) for part, examples in parts.items()}
    return split_arrays(pairs, names=_class_names(parts["train"]), image_shape=image_shape, seed=seed, name=name)


def _class_names(data: Any) -> tuple[str, ...]:
    """The class names that a dataset states, as torchvision's do."""
    dataset = data.dataset if isinstance(data, DataLoader) else data
    names = getattr(dataset, "classes", ()) if isinstance(dataset, Dataset) else ()
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


# ------------------------------------------------------------------------------------------------------ named arrays


def parse_array_name(name: str) -> tuple[str, str] | None:
    """The part and the array (x or y) that a key in a file, or the name of a .npy file, denotes; None for others.

    >>> parse_array_name("x"), parse_array_name("X_train"), parse_array_name("test_labels"), parse_array_name("notes")
    (('train', 'x'), ('train', 'x'), ('test', 'y'), None)
    """
    words = re.split(r"[_\-. ]+", name.lower())
    arrays = [ARRAY_NAMES[word] for word in words if word in ARRAY_NAMES]
    rest = [word for word in words if word not in ARRAY_NAMES]
    part = PART_NAMES.get("".join(rest))
    return (part, arrays[0]) if part and len(arrays) == 1 and len(rest) <= 1 else None


def split_named_arrays(
    arrays: Mapping[str, Any], where: str, *, image_shape: ImageShape | None = None, seed: int = 0, name: str = ""
) -> DataSplit:
    """The split of named arrays, as in .npz files: x, y, x_test, class_names, image_shape, features.

    >>> arrays = {"x": np.random.rand(20, 3), "y": np.arange(20) % 2, "class_names": ["no", "yes"]}
    >>> split_named_arrays(arrays, "a mapping").classes
    ('no', 'yes')
    """
    pairs: dict[str, dict[str, Array]] = {}
    others: dict[str, Array] = {}
    for key, value in arrays.items():
        if key.lower() in OTHERS:
            others[OTHERS[key.lower()]] = np.asarray(value)
        elif parsed := parse_array_name(key):
            pairs.setdefault(parsed[0], {})[parsed[1]] = np.asarray(value)
    lacking = [f"{array} of {part}" for part, pair in pairs.items() for array in ("x", "y") if array not in pair]
    if "train" not in pairs or lacking:
        raise FormatError(
            f"arrays must be named x and y, and x_test, y_test (or val) if there are more: {where} lacks "
            f"{lacking[0] if lacking else 'x and y'}, it has {', '.join(arrays) or 'nothing'}"
        )
    shape: Any = image_shape
    if shape is None and "image_shape" in others:
        shape = tuple(map(int, others["image_shape"].reshape(-1)))
        if len(shape) != 3:
            raise FormatError(f"image_shape must be channels, height and width: got {shape}")
    names, features = (
        tuple(map(str, others[key].tolist())) if key in others else () for key in ("class_names", "features")
    )
    parts = {part: (pair["x"], pair["y"]) for part, pair in pairs.items()}
    return split_arrays(parts, names=names, image_shape=shape, seed=seed, features=features, name=name)


def read_array_file(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, or of a .npy file and those next to it that belong to it, such as y.npy to x.npy."""
    files = [path]
    if path.suffix == ".npy":
        files = sorted({path, *(each for each in path.parent.glob("*.npy") if parse_array_name(each.stem))})
    arrays: dict[str, Array] = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                loaded = np.load(stream, allow_pickle=False)
                arrays |= {file.stem: loaded} if file.suffix == ".npy" else {key: loaded[key] for key in loaded.files}
        except Exception as error:  # NumPy, zipfile and zlib raise different errors for a damaged file
            reason = str(error).partition("\n")[0]
            raise FormatError(
                f"{file} must be a file of numpy.savez or numpy.save, without objects: {reason}"
            ) from None
    return arrays
