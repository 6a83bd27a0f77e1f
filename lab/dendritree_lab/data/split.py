"""A data set in three parts, with what is known about its inputs and targets and how they are scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dendritree.errors import FormatError, ShapeError, check_int
from dendritree.files import whole_file
from dendritree.training.examples import Examples, Split, fixed_order

CLIP = 5.0
"""Standardized columns of a table are clipped here: a few districts of California have extreme room counts."""
SMALLEST_SD = 1e-6


@dataclass(frozen=True)
class Scaling:
    """How inputs are shifted and scaled: by one mean and deviation for all, per channel of images, or per column.

    Unlike scikit-learn's StandardScaler, it divides by n - 1 for tables, supports images and can clip; published
    results depend on this.

    >>> Scaling((0.5,), (0.25,))(torch.tensor([[0.5, 1.0]]))
    tensor([[0., 2.]])
    """

    mean: tuple[float, ...]
    sd: tuple[float, ...]
    clip: float | None = None
    """Scaled inputs stay within this distance of 0; None for no limit."""

    @classmethod
    def of(cls, x: Tensor, image_shape: tuple[int, int, int] | None = None) -> Scaling:
        """The scaling of training examples: one mean and deviation per channel of images, per column of tables.

        >>> Scaling.of(torch.tensor([[0.0, 0.0, 1.0, 3.0], [1.0, 1.0, 1.0, 3.0]]), image_shape=(2, 1, 2)).mean
        (0.5, 2.0)
        """
        if image_shape is None:
            mean, sd = x.mean(0), x.std(0).clamp_min(SMALLEST_SD)
            return cls(tuple(mean.tolist()), tuple(sd.tolist()), CLIP)
        channels = x.reshape(len(x), image_shape[0], -1).double()  # (examples, channels, pixels)
        mean, sd = channels.mean((0, 2)), channels.std((0, 2), correction=0).clamp_min(SMALLEST_SD)
        return cls(tuple(mean.tolist()), tuple(sd.tolist()))

    def __call__(self, x: Tensor) -> Tensor:
        """Scale inputs, one example per row."""
        inputs = math.prod(x.shape[1:])
        if inputs % len(self.mean):
            raise FormatError(f"a scaling must have one mean per input or channel: got {len(self.mean)} for {inputs}")
        groups = x.reshape(len(x), len(self.mean), -1)  # (examples, channels or columns, pixels)
        mean, sd = (torch.tensor(values, dtype=x.dtype, device=x.device)[:, None] for values in (self.mean, self.sd))
        scaled = (groups - mean) / sd
        return (scaled if self.clip is None else scaled.clamp_(-self.clip, self.clip)).reshape(x.shape)

    def bounds(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and largest scaled value of inputs from `low` to `high`, rounded to three decimals."""
        ends = [(end - mean) / sd for end in (low, high) for mean, sd in zip(self.mean, self.sd, strict=True)]
        return round(min(ends), 3), round(max(ends), 3)


@dataclass(frozen=True)
class DataSplit(Split):
    """Training, validation and test examples, and what is known about them."""

    features: tuple[str, ...] = field(default=(), kw_only=True)
    """Names of the columns of x, if they have names."""
    image_shape: tuple[int, int, int] | None = field(default=None, kw_only=True)
    """(channels, height, width) of the image in each row of x, pixels row by row; None if x is not an image."""
    classes: tuple[str, ...] = field(default=(), kw_only=True)
    """Names of the classes that y numbers from 0, if they have names."""
    scaling: Scaling | None = field(default=None, kw_only=True)
    """How studies scale x, if that is fixed; None to learn it from the training examples."""
    name: str = field(default="", kw_only=True)
    """The name of the data in reports."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """How the data was split and what was left out, one sentence each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features and len(self.features) != self.train.x.shape[-1]:
            raise ShapeError(
                f"features must have one name per column of x, or be empty: got {len(self.features)} names, x "
                f"{tuple(self.train.x.shape)}"
            )
        if self.image_shape is not None and math.prod(self.image_shape) != math.prod(self.train.x.shape[1:]):
            raise ShapeError(
                f"image_shape must have as many pixels as x: got {self.image_shape}, x {tuple(self.train.x.shape)}"
            )

    def scaled(self) -> DataSplit:
        """The same split with x scaled as in studies: by `scaling`, or by that of the training examples.

        >>> x = torch.tensor([[1.0], [3.0]])
        >>> DataSplit(*[Examples(x, torch.arange(2))] * 3).scaled().train.x.flatten()
        tensor([-0.7071,  0.7071])
        """
        scaling = self.scaling or Scaling.of(self.train.x, self.image_shape)
        train, val, test = (Examples(scaling(part.x), part.y, part.weight) for part in self.parts)
        return replace(self, train=train, val=val, test=test, scaling=scaling)


def first_examples(split: DataSplit, count: int) -> DataSplit:
    """The same split with `count` of its training examples, for learning curves; val and test are unchanged.

    They are the first `count` in `fixed_order`, so a larger count includes all examples of a smaller one. They keep
    their order in the split: with all of them, training gives the same result as without a limit.

    >>> split = DataSplit(*[Examples(torch.rand(500, 3), torch.arange(500))] * 3)
    >>> small = first_examples(split, 128)
    >>> len(small.train), len(small.val), len(small.test)
    (128, 500, 500)
    """
    whole = split.train
    if check_int("count", count) > len(whole):
        raise ShapeError(f"count must be at most the number of training examples, {len(whole)}: got {count}")
    first = torch.from_numpy(np.sort(fixed_order(len(whole))[:count])).to(whole.x.device)
    return replace(split, train=whole.select(first))


# -------------------------------------------------------------------------------------------------------- in a file


def write_split(split: DataSplit, path: Path) -> None:
    """Write a split for the processes of a study: examples, restored bit-identically, image shape and names.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "data.npz"
    >>> split = DataSplit(*[Examples(torch.rand(5, 4), torch.arange(5))] * 3, classes=tuple("abcde"))
    >>> write_split(split, file)
    >>> torch.equal(read_split(file).val.x, split.val.x), read_split(file).classes
    (True, ('a', 'b', 'c', 'd', 'e'))
    """
    arrays: dict[str, NDArray[Any]] = {
        "classes": np.array(split.classes, str),
        "features": np.array(split.features, str),
        "image_shape": np.array(split.image_shape or (), np.int64),
    }
    for part in ("train", "val", "test"):
        examples: Examples = getattr(split, part)
        arrays |= {f"x_{part}": _in_bytes(examples.x.cpu().numpy()), f"y_{part}": examples.y.cpu().numpy()}
    with whole_file(path, "the copy of the data") as scratch, scratch.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_split(path: str | Path) -> DataSplit:
    """The split that `write_split` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        examples = []
        for part in ("train", "val", "test"):
            x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
            x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x
            examples.append(Examples(torch.from_numpy(x), torch.from_numpy(y)))
        classes, features = (tuple(map(str, arrays[name].tolist())) for name in ("classes", "features"))
        shape: Any = tuple(map(int, arrays["image_shape"].tolist())) or None
        return DataSplit(*examples, features=features, classes=classes, image_shape=shape)


def _in_bytes(x: NDArray[Any]) -> NDArray[Any]:
    """Pixels as bytes, a quarter of the size, if the conversion is lossless."""
    if x.dtype != np.float32 or not x.size or x.min() < 0 or x.max() > 1:
        return x
    pixels = np.round(x * 255).astype(np.uint8)
    return pixels if bool((pixels.astype(np.float32) / np.float32(255) == x).all()) else x
