"""How data is named: a built-in name, a file, a folder, or Python objects."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Dataset

from dendritree.errors import MissingDataError, OptionError, check_int, nearest
from dendritree.training.examples import Examples
from dendritree.wiring.image_orders import check_image_shape

from .arrays import ImageShape, read_array_file, split_named_arrays, split_object
from .builtin import DATASETS, load_builtin
from .image_folder import has_images, split_image_folder
from .split import DataSplit, first_examples
from .tables.reading import PARQUET_ENDINGS, TEXT_ENDINGS, read_table
from .tables.target import split_table

SHOWN_CLASSES = 10
ARRAY_ENDINGS = (".npz", ".npy")
FORMS = (
    "a built-in name (dendritree data list), also as mnist:128 for 128 training examples, a .npz file with x and y,"
    " x.npy with y.npy next to it, a folder of PNG or JPEG images with one folder per class, or a CSV or Parquet table"
    " with a target"
)
"""The supported kinds of data, for messages."""


def is_table(data: Any) -> bool:
    """Whether data is a table, which needs a target: a data frame, or a path that ends like one.

    >>> is_table("houses.csv.gz"), is_table("mnist")
    (True, False)
    """
    if isinstance(data, str | os.PathLike):
        name = os.fspath(data).lower().removesuffix(".gz")
        return name.endswith((*TEXT_ENDINGS, *PARQUET_ENDINGS))
    return hasattr(data, "columns") and hasattr(data, "iloc")


def load_dataset(
    data: Any,
    *,
    target: Any = None,
    image: Sequence[int] | None = None,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DataSplit:
    """Load data of any supported kind as training, validation and test examples; the same parts every time.

    | data | x | y |
    |---|---|---|
    | a name in `DATASETS`: `"mnist"`, `"mnist:128"` (128 training examples) | pixels in [0, 1], or columns | class |
    | a `.npz` file with x, y, optionally x_test, y_test, class_names | rows of numbers, or images | labels |
    | `x.npy`, with `y.npy` (and `x_test.npy`, `y_test.npy`) next to it | the same | the same |
    | a folder of PNG and JPEG images, one per class, optionally in `train`, `test` | pixels in [0, 1] | class |
    | a `.csv` or `.parquet` file, or a data frame, with `target` | its columns, categories as 0 or 1 | the target |
    | `(x, y)`, arrays or tensors; a mapping of such pairs by `train`, `test` | rows of numbers, or images | labels |
    | a torch `Dataset` with a length, or a `DataLoader` of one | its items, in order | labels |

    Images are rows of pixels, channel by channel; `image_shape` of the split has their shape. Labels that are strings
    or integers are classes; floats are a quantity to predict. Parts that are not given are split off the training
    examples at random, a fifth of each class for each part, with `seed`; `notes` of the split describes how.

    `DATASETS` describes the built-in data sets: mnist, mnist-4-9, mnist-pairs, fashion-mnist, fashion-pairs, cifar10,
    digits, adult, california-housing, tinyshakespeare. Their parts do not depend on `seed`: test parts are the official
    ones, and the others are split by one fixed permutation (`fixed_order`).

    Args:
        data: the data.
        target: the column of a table to predict.
        image: (channels, height, width) to resize the images of a folder to, or the shape of the images that rows of
            numbers hold.
        seed: seed of the split into parts.
        data_dir: a folder to search for built-in data sets first; by default that of the environment variable
            DENDRITREE_DATA.
        download: whether to fetch built-in data sets that are not on this machine.

    >>> load_dataset("digits").train.x.shape
    torch.Size([1197, 64])
    >>> import numpy
    >>> split = load_dataset((numpy.random.rand(50, 12, 12), ["cat", "dog"] * 25))
    >>> split.image_shape, split.classes, len(split.test)
    ((1, 12, 12), ('cat', 'dog'), 10)
    """
    shape = None if image is None else check_image_shape(tuple(image))
    seed = check_int("seed", seed, least=0)
    if target is not None and not is_table(data):
        raise OptionError(f"target must name a column of a table: {data!r:.60} is not a table")
    if isinstance(data, DataSplit):
        return data if shape is None else replace(data, image_shape=shape)
    name, colon, count = data.partition(":") if isinstance(data, str) else ("", "", "")
    if name in DATASETS and (count.isdecimal() or not colon):
        split = load_builtin(name, data_dir=data_dir, download=download)
        return first_examples(split, int(count)) if colon else split
    if isinstance(data, str | os.PathLike) and os.fspath(data):
        return _load_path(Path(data).expanduser(), target, shape, seed)
    if is_table(data):
        return split_table(data, target, seed=seed, name="the table")
    if isinstance(data, tuple) and len(data) == 2 and is_table(data[0]):
        frame = data[0].reset_index(drop=True)
        name = next(name for name in ("target", "y", "the target") if name not in frame.columns)
        return split_table(frame.assign(**{name: list(data[1])}), name, seed=seed, name="the table")
    if not isinstance(data, tuple | list | Mapping | Examples | Dataset | DataLoader) or data in ((), [], {}):
        in_python = "in Python also (x, y), a mapping of such, a DataSplit, a data frame, a Dataset or a DataLoader"
        raise OptionError(f"data must be {FORMS}; {in_python}: got {data!r:.60}")
    return split_object(data, image_shape=shape, seed=seed, name="the data")


def _load_path(path: Path, target: Any, shape: ImageShape | None, seed: int) -> DataSplit:
    """The data at a path, whatever kind it is."""
    name = path.resolve().name
    if is_table(path):
        return split_table(read_table(path), target, seed=seed, name=name)
    if not path.exists():
        beside = [str(each) for each in path.parent.iterdir()] if path.parent.is_dir() else []
        near = nearest(str(path), DATASETS) or nearest(str(path), beside)
        hint = f"; did you mean {near!r}?" if near else ""
        raise MissingDataError(f"there is no {str(path)!r}{hint}; data must be {FORMS}")
    if path.is_dir():
        arrays = [path / name for name in ("x.npy", "x_train.npy") if (path / name).is_file()]
        if not arrays and has_images(path):
            return split_image_folder(path, image_shape=shape, seed=seed, name=name)
        path = arrays[0] if arrays else path
    if path.suffix not in ARRAY_ENDINGS:
        raise OptionError(f"data must be {FORMS}: got {str(path)!r}")
    return split_named_arrays(read_array_file(path), name, image_shape=shape, seed=seed, name=name)


def parse_image_shape(text: str) -> ImageShape:
    """Channels, height and width from `28x28` or `3x32x32`.

    >>> parse_image_shape("28x56")
    (1, 28, 56)
    """
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"image must be given as 28x28 (height, width), 3x32x32, or none: got {text!r}")
    sizes = [int(part) for part in parts]
    return (1, *sizes) if len(sizes) == 2 else tuple(sizes)  # type: ignore[return-value]


def describe(split: DataSplit) -> str:
    """What the data is and how it was split, in one line.

    >>> describe(load_dataset(([[0.0], [1.0]] * 10, ["cat", "dog"] * 10))).split("; ")[0]
    'the data: 2 classes (cat, dog)'
    """
    count = len(split.classes)
    names = f"{', '.join(split.classes[:SHOWN_CLASSES])}{', ...' * (count > SHOWN_CLASSES)}"
    kind = f"{count} classes ({names})" if count else "a quantity"
    return f"{split.name}: {'; '.join([kind, *split.notes])}"
