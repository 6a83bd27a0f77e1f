"""Examples, and their split into three parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError, ShapeError


@dataclass(frozen=True)
class Examples:
    """Inputs, one per row of `x`, and their targets."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    """How much each example counts; None if all count the same."""

    def __post_init__(self) -> None:
        for name in ("x", "y", "weight"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and not (name == "weight" and value is None):
                raise OptionError(f"{name} of Examples must be a tensor: got {type(value).__name__}")

    def __len__(self) -> int:
        return len(self.x)

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


@dataclass(frozen=True)
class Split:
    """Examples to train on, to select a model by, and to evaluate it on once."""

    train: Examples
    val: Examples
    test: Examples
    features: tuple[str, ...] = field(default=(), kw_only=True)
    """Names of the columns of x, where they have names."""

    def __post_init__(self) -> None:
        for name, part in zip(("train", "val", "test"), self.parts, strict=True):
            if len(part.x) != len(part.y) or part.x.shape[1:] != self.train.x.shape[1:]:
                raise ShapeError(
                    f"{name} must have one y for each x, of the shape of the training inputs: got x "
                    f"{tuple(part.x.shape)}, y {tuple(part.y.shape)}"
                )
            if part.weight is not None and part.weight.shape != part.x.shape[:1]:
                raise ShapeError(
                    f"{name} must have one weight for each x, or none: got x {tuple(part.x.shape)}, weight "
                    f"{tuple(part.weight.shape)}"
                )
        if self.features and len(self.features) != self.train.x.shape[-1]:
            raise ShapeError(
                f"features must name each column of x, or none: got {len(self.features)} names, x "
                f"{tuple(self.train.x.shape)}"
            )

    @property
    def parts(self) -> tuple[Examples, Examples, Examples]:
        """Train, val and test."""
        return self.train, self.val, self.test


def fixed_order(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The permutation by which a file of `count` examples is split: NumPy's default generator, seed 0.

    >>> fixed_order(5).tolist()
    [2, 4, 3, 0, 1]
    """
    return np.random.default_rng(0).permutation(count)


def first_examples(split: Split, count: int) -> Split:
    """The same split with `count` of its training examples, for learning curves; val and test stay as they are.

    They are the first `count` in `fixed_order`, so a larger count has all examples of a smaller one. They keep their
    order in the split: with all of them, training gives what it gives without a limit.

    >>> split = Split(*[Examples(torch.rand(500, 3), torch.arange(500))] * 3)
    >>> small = first_examples(split, 128)
    >>> len(small.train), len(small.val), len(small.test)
    (128, 500, 500)
    """
    whole = split.train
    if not isinstance(count, Integral) or isinstance(count, bool) or not 1 <= count <= len(whole):
        raise ShapeError(f"count must be an integer from 1 to the {len(whole)} training examples: got {count!r}")
    first = torch.from_numpy(np.sort(fixed_order(len(whole))[:count])).to(whole.x.device)
    return replace(split, train=whole.select(first))
