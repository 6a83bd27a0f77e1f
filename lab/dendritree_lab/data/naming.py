"""How data is named: a built-in name, a file, a folder, or Python objects."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset

from dendritree.errors import FormatError, MissingDataError, OptionError, check_int, nearest
from dendritree.training.examples import PARTS, Examples, arrays_of, as_array
from dendritree.wiring.image_orders import check_image_shape

from .arrays import PART_NAMES, Array, ImageShape, split_arrays
from .builtin import DATASETS, load_builtin
from .image_folder import has_images, split_image_folder
from .split import DataSplit, first_examples
from .tables.deciding import read_table
from .tables.reading import PARQUET_ENDINGS, TEXT_ENDINGS
from .tables.target import split_table

SHOWN_CLASSES = 10
ARRAY_ENDINGS = (".npz", ".npy")
ARRAY_NAMES = dict.fromkeys(("x", "images", "data", "inputs"), "x") | dict.fromkeys(("y", "labels", "targets"), "y")
OTHERS = {"class_names": "class_names", "classes": "class_names", "image_shape": "image_shape", "features": "features"}
"""Names of what a file may contain besides x and y."""
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
        image: (channels, height, width) to resize the images of a folder to, or the shape of images stored as rows
            of numbers.
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
        in_python = "in Python also (x, y), a mapping of such pairs, DataSplit, data frame, Dataset or DataLoader"
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
        hint = f"did you mean {near!r}?" if near else f"data must be {FORMS}"
        raise MissingDataError(f"there is no {str(path)!r}; {hint}")
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
        raise OptionError(f"image must be a size such as 28x28 (height, width) or 3x32x32, or none: got {text!r}")
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


# ---------------------------------------------------------------------------------------------- objects and arrays


def split_object(data: Any, *, image_shape: ImageShape | None = None, seed: int = 0, name: str = "") -> DataSplit:
    """The split of a pair (x, y), a dataset, a loader, or a mapping of parts or of named arrays.

    >>> import torch
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
        raise OptionError(f"parts must be train, and optionally val and test: got {', '.join(map(str, parts))}")
    pairs = {part: arrays_of(examples) for part, examples in parts.items()}
    return split_arrays(pairs, names=_class_names(parts["train"]), image_shape=image_shape, seed=seed, name=name)


def _class_names(data: Any) -> tuple[str, ...]:
    """The class names that a dataset states, as torchvision's do."""
    dataset = data.dataset if isinstance(data, DataLoader) else data
    names = getattr(dataset, "classes", ()) if isinstance(dataset, Dataset) else ()
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


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
            f"arrays must be named x and y, for other parts x_test and y_test, or x_val and y_val: {where} lacks "
            f"{lacking[0] if lacking else 'x and y'}; it has {', '.join(arrays) or 'nothing'}"
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
