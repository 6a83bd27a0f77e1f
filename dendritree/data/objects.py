"""Examples in Python objects: pairs of arrays or tensors, mappings of them, datasets and loaders of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from ..errors import OptionError, ShapeError
from .arrays import Array, Parts, split_arrays, split_named_arrays
from .split import Examples, Split, cut

ROUND = 256
"""Number of items of a dataset that are collated at once."""
PARTS = {"train", "val", "test"}


def split_object(data: Any, *, image_shape: tuple[int, int, int] | None = None, seed: int = 0, name: str = "") -> Split:
    """The split of a pair (x, y), a dataset, a loader, or a mapping of parts or of named arrays.

    >>> from torch.utils.data import TensorDataset
    >>> x, y = torch.rand(40, 3, 8, 8), torch.arange(40) % 2
    >>> split_object(TensorDataset(x, y)).image_shape
    (3, 8, 8)
    >>> parts = split_object({"train": (x, y), "test": (x.numpy()[:5], [0, 1, 0, 1, 0])}).parts
    >>> [len(part) for part in parts]
    [32, 8, 5]
    """
    options: dict[str, Any] = {"image_shape": image_shape, "seed": seed, "name": name}
    if isinstance(data, Mapping) and not PARTS.isdisjoint(data):
        if not set(data) <= PARTS or "train" not in data:
            raise OptionError(f"parts must be train, and val or test: got {', '.join(map(str, data))}")
        names = next((found for part in data.values() if (found := _names(part))), ())
        return split_arrays({part: arrays_of(examples) for part, examples in data.items()}, names=names, **options)
    if isinstance(data, Mapping):
        return split_named_arrays({key: as_array(value, key) for key, value in data.items()}, "the mapping", **options)
    parts: Parts = {"train": arrays_of(data)}
    return split_arrays(parts, names=_names(data), **options)


def split_to_fit(data: Any) -> Split:
    """Training and validation examples for a custom model: x and y keep their shapes and values.

    Without validation examples, a fifth is split off at random, with seed 0; there is no test part.

    Args:
        data: a pair (x, y), `Examples`, a dataset, a loader, or a mapping of such by `train` and `val`.

    >>> split = split_to_fit((np.random.rand(20, 3, 8, 8), np.arange(20) % 2))
    >>> split.train.x.shape, len(split.val)
    (torch.Size([16, 3, 8, 8]), 4)
    """
    named = data if isinstance(data, Mapping) else {"train": data}
    if "train" not in named or not set(named) <= PARTS:
        raise OptionError(f"parts must be train, and val or test: got {', '.join(map(str, named))}")
    parts = {part: _tensors(*arrays_of(examples)) for part, examples in named.items()}
    train = parts["train"]
    if len(train.x) != len(train.y):
        raise ShapeError(f"there must be one y for each x: got x {tuple(train.x.shape)}, y {tuple(train.y.shape)}")
    if "val" not in parts:
        classes = train.y.numpy() if train.y.ndim == 1 and not train.y.is_floating_point() else np.zeros(len(train))
        even = classes if len(classes) and np.unique(classes, return_counts=True)[1].min() > 1 else np.zeros(len(train))
        places = (torch.from_numpy(place) for place in cut(even, held_out=1))
        parts["train"], parts["val"] = (train.select(place) for place in places)
    return Split(parts["train"], parts["val"], parts.get("test", parts["train"].select(slice(0))))


def _tensors(x: Array, y: Array) -> Examples:
    """Tensors unchanged, except float64, which models in float32 do not accept."""
    tensors = [
        torch.as_tensor(values.astype(np.float32) if values.dtype == np.float64 else values) for values in (x, y)
    ]
    return Examples(*tensors)


def arrays_of(data: Any) -> tuple[Array, Array]:
    """x and y of a pair, of `Examples`, or of all items of a dataset.

    >>> x, y = arrays_of(([[1.0, 2.0]], [1]))
    >>> x.shape, y.tolist()
    ((1, 2), [1])
    """
    match data:
        case Examples():
            pair: tuple[Any, Any] = data.x, data.y
        case (x, y) if isinstance(data, tuple | list):
            pair = x, y
        case DataLoader():
            pair = _items(data.dataset, data.collate_fn or default_collate)
        case Dataset():
            pair = _items(data, default_collate)
        case _:
            raise OptionError(f"examples must be a pair (x, y), a Dataset or a DataLoader: got {type(data).__name__}")
    return as_array(pair[0], "x"), as_array(pair[1], "y")


def as_array(values: Any, name: str) -> Array:
    """An array from a tensor, nested lists, or anything that numpy accepts."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return np.asarray(values.float().numpy() if values.dtype == torch.bfloat16 else values.numpy())
    try:
        return np.asarray(values)
    except ValueError:  # ragged lists
        raise ShapeError(f"{name} must have examples of one shape: got several") from None


def _items(dataset: Any, collate: Any) -> tuple[Array, Array]:
    """All items in the dataset's own order, regardless of a loader's order."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise OptionError(f"a dataset must have a length and items by index: {type(dataset).__name__} does not")
    if not len(dataset):
        raise ShapeError(f"a dataset must have examples: {type(dataset).__name__} has none")
    xs, ys = [], []
    for start in range(0, len(dataset), ROUND):
        items = [_plain(dataset[place]) for place in range(start, min(start + ROUND, len(dataset)))]
        try:
            x, y = collate(items)
        except (RuntimeError, TypeError, ValueError) as error:
            raise ShapeError(
                f"items of a dataset must be pairs x, y of one shape: those from {start} on are not "
                f"({str(error).partition(chr(10))[0]:.120})"
            ) from None
        xs.append(as_array(x, "x"))
        ys.append(as_array(y, "y"))
    if len({x.shape[1:] for x in xs}) > 1:
        raise ShapeError(f"x must have examples of one shape: got {', '.join(sorted({str(x.shape[1:]) for x in xs}))}")
    return np.concatenate(xs), np.concatenate(ys)


def _plain(item: Any) -> Any:
    """An item, with a Pillow image converted to an array."""
    if isinstance(item, tuple | list) and len(item) == 2 and hasattr(item[0], "getbands"):
        return np.array(item[0]), item[1]
    return item


def _names(data: Any) -> tuple[str, ...]:
    """The class names that a dataset states, as torchvision's do."""
    dataset = data.dataset if isinstance(data, DataLoader) else data
    names = getattr(dataset, "classes", ()) if isinstance(dataset, Dataset) else ()
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()
