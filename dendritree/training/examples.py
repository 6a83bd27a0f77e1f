"""Examples, their split into parts, and what `fit` accepts as data: arrays, tensors, datasets and loaders."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from ..errors import OptionError, ShapeError

Array = NDArray[Any]
COLLATED = 256
"""Number of items of a dataset that are collated at once."""
FIFTH = 5
"""Unless a data set specifies otherwise, a fifth of the examples is for validation and another fifth for the test."""
PARTS = {"train", "val", "test"}


@dataclass(frozen=True)
class Examples:
    """Inputs, one per row of `x`, and their targets."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    """The weight of each example; None if all are equal."""

    def __post_init__(self) -> None:
        for name in ("x", "y", "weight"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and not (name == "weight" and value is None):
                raise OptionError(f"{name} of Examples must be a tensor: got {type(value).__name__}")

    def __len__(self) -> int:
        return len(self.x)

    def __iter__(self) -> Iterator[Tensor]:
        """x and y, for `x, y = examples`."""
        return iter((self.x, self.y))

    def __repr__(self) -> str:
        weight = "" if self.weight is None else ", weighted"
        return f"Examples(x={_form(self.x)}, y={_form(self.y)}{weight})"

    def to(self, device: torch.device | str) -> Examples:
        """The same examples on a device."""
        return self._map(lambda values: values.to(device))

    def select(self, rows: Tensor | slice) -> Examples:
        """Some of the examples.

        >>> Examples(torch.rand(5, 3), torch.arange(5)).select(torch.tensor([3, 1])).y
        tensor([3, 1])
        """
        return self._map(lambda values: values[rows])

    def _map(self, change: Callable[[Tensor], Tensor]) -> Examples:
        return Examples(change(self.x), change(self.y), None if self.weight is None else change(self.weight))


def _form(values: Tensor) -> str:
    """Shape and dtype of a tensor.

    >>> _form(torch.zeros(2, 3))
    '(2, 3) float32'
    """
    return f"{tuple(values.shape)} {str(values.dtype).removeprefix('torch.')}"


@dataclass(frozen=True)
class Split:
    """Training, validation and test examples."""

    train: Examples
    val: Examples
    test: Examples

    def __post_init__(self) -> None:
        for name, part in zip(("train", "val", "test"), self.parts, strict=True):
            x, y = tuple(part.x.shape), tuple(part.y.shape)
            if x[:1] != y[:1] or x[1:] != self.train.x.shape[1:]:
                rule = "must have one y for each x, and x of the shape of the training inputs"
                raise ShapeError(f"{name} {rule}: got x {x}, y {y}")
            if part.weight is not None and part.weight.shape != x[:1]:
                raise ShapeError(
                    f"{name} must have one weight for each x: got x {x}, weight {tuple(part.weight.shape)}"
                )

    @property
    def parts(self) -> tuple[Examples, Examples, Examples]:
        """Train, val and test."""
        return self.train, self.val, self.test


def fixed_order(count: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The permutation by which `count` examples are split: from NumPy's default generator, by default with seed 0.

    >>> fixed_order(5).tolist()
    [2, 4, 3, 0, 1]
    """
    return np.random.default_rng(seed).permutation(count)


def cut(labels: NDArray[Any], *, held_out: int = 2, seed: int = 0) -> tuple[NDArray[np.int64], ...]:
    """Indices of the training examples, then those of each held-out part, in shuffled order.

    Each part holds out a fifth of every class, but at least one example, so that no part lacks a class.

    Args:
        labels: the class of each example; all equal if there are no classes.
        held_out: 2 for validation and test, 1 if there are separate test examples.
        seed: seed of the order.

    >>> [part.tolist() for part in cut(np.array([0, 0, 0, 0, 1, 1, 1]))]
    [[5, 0, 1], [2, 4], [3, 6]]
    """
    order = fixed_order(len(labels), seed)
    part = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        own = order[labels[order] == label]
        share = max(1, len(own) // FIFTH)
        for number in range(held_out):
            part[own[number * share : (number + 1) * share]] = number + 1
    return tuple(order[part[order] == number] for number in range(held_out + 1))


def split_to_fit(data: Any) -> Split:
    """Training and validation examples for a custom model: x and y keep their shapes and values.

    Images of dtype uint8, of shape (n, height, width) or (n, channels, height, width), are divided by 255.
    Without validation examples, a fifth is split off at random, with seed 0; there is no test part.

    Args:
        data: a pair (x, y), `Examples`, a dataset, a loader, or a mapping from `train` and `val` to any of these.

    >>> split = split_to_fit((np.random.rand(20, 3, 8, 8), np.arange(20) % 2))
    >>> split.train.x.shape, len(split.val)
    (torch.Size([16, 3, 8, 8]), 4)
    """
    named = data if isinstance(data, Mapping) else {"train": data}
    if "train" not in named or not set(named) <= PARTS:
        raise OptionError(f"parts must be train, and val or test: got {', '.join(map(str, named))}")
    parts = {part: Examples(_pixels(x), _tensor(y)) for part, (x, y) in ((p, arrays_of(e)) for p, e in named.items())}
    train = parts["train"]
    if len(train.x) != len(train.y):
        raise ShapeError(f"there must be one y for each x: got x {tuple(train.x.shape)}, y {tuple(train.y.shape)}")
    if "val" not in parts:
        labels = np.zeros(len(train))
        if len(train) and train.y.ndim == 1 and not train.y.is_floating_point():
            classes = train.y.numpy()
            labels = classes if np.unique(classes, return_counts=True)[1].min() > 1 else labels
        parts["train"], parts["val"] = (train.select(torch.from_numpy(rows)) for rows in cut(labels, held_out=1))
    return Split(parts["train"], parts["val"], parts.get("test", parts["train"].select(slice(0))))


def _pixels(x: Array) -> Tensor:
    """Inputs as a tensor; uint8 images are scaled to [0, 1]."""
    return _tensor(x).float() / 255 if x.dtype == np.uint8 and x.ndim in (3, 4) else _tensor(x)


def _tensor(values: Array) -> Tensor:
    """A tensor of the same dtype, except for float64, which float32 models do not accept."""
    return torch.as_tensor(values.astype(np.float32) if values.dtype == np.float64 else values)


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
    name = type(dataset).__name__
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise OptionError(f"a dataset must have a length and items by index: {name} does not")
    loader = DataLoader(
        dataset,
        COLLATED,
        collate_fn=lambda items: collate([_without_pillow(item) for item in items]),
        generator=torch.Generator(),  # leaves torch's own generator unchanged
    )
    try:
        pairs = [(as_array(x, "x"), as_array(y, "y")) for x, y in loader]
        x, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ShapeError(
            f"the items of a dataset must be pairs (x, y) of one shape: those of {name} are not ({reason:.120})"
        ) from None
    return x, y


def _without_pillow(item: Any) -> Any:
    """An item, with a Pillow image converted to an array."""
    if isinstance(item, tuple | list) and len(item) == 2 and hasattr(item[0], "getbands"):
        return np.array(item[0]), item[1]
    return item


def no_leftover(rows: int, batch_size: int) -> int:
    """The batch size, or the next smaller one without a last batch of one row; if there is none, the next larger.

    >>> no_leftover(129, 64), no_leftover(129, 2)
    (63, 3)
    """
    sizes = itertools.chain(range(batch_size, 1, -1), range(batch_size + 1, rows + 1))
    return next(size for size in sizes if rows % size != 1)
