"""Data sets from Python objects: pairs of arrays or tensors, mappings of them, datasets and loaders of torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.data import DataLoader, Dataset

from dendritree.errors import OptionError
from dendritree.training.examples import PARTS, arrays_of, as_array

from .arrays import Parts, split_arrays, split_named_arrays
from .split import DataSplit


def split_object(
    data: Any, *, image_shape: tuple[int, int, int] | None = None, seed: int = 0, name: str = ""
) -> DataSplit:
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


def _names(data: Any) -> tuple[str, ...]:
    """The class names that a dataset states, as torchvision's do."""
    dataset = data.dataset if isinstance(data, DataLoader) else data
    names = getattr(dataset, "classes", ()) if isinstance(dataset, Dataset) else ()
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()
