"""Examples, and their split into three parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import OptionError, ShapeError
from .scaling import Scaling

FIFTH = 5
"""Unless a data set specifies otherwise, a fifth of the examples is for validation and another fifth for the test."""


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
    """Training, validation and test examples, and what is known about them."""

    train: Examples
    val: Examples
    test: Examples
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
        if self.image_shape is not None and math.prod(self.image_shape) != math.prod(self.train.x.shape[1:]):
            raise ShapeError(
                f"image_shape must have as many pixels as x: got {self.image_shape}, x {tuple(self.train.x.shape)}"
            )

    @property
    def parts(self) -> tuple[Examples, Examples, Examples]:
        """Train, val and test."""
        return self.train, self.val, self.test

    def scaled(self) -> Split:
        """The same split with x scaled as in studies: by `scaling`, or by that of the training examples.

        >>> x = torch.tensor([[1.0], [3.0]])
        >>> Split(*[Examples(x, torch.arange(2))] * 3).scaled().train.x.flatten()
        tensor([-0.7071,  0.7071])
        """
        scaling = self.scaling or Scaling.of(self.train.x, self.image_shape)
        train, val, test = (Examples(scaling(part.x), part.y, part.weight) for part in self.parts)
        return replace(self, train=train, val=val, test=test, scaling=scaling)


def fixed_order(count: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The permutation by which `count` examples are split: from NumPy's default generator, by default with seed 0.

    >>> fixed_order(5).tolist()
    [2, 4, 3, 0, 1]
    """
    return np.random.default_rng(seed).permutation(count)


def cut(labels: NDArray[Any], *, held_out: int = 2, seed: int = 0) -> tuple[NDArray[np.int64], ...]:
    """Indices of the training examples, then those of each held-out part, in shuffled order.

    A fifth of every class is held out for each part, and at least one example, so that no part lacks a class.

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


def first_examples(split: Split, count: int) -> Split:
    """The same split with `count` of its training examples, for learning curves; val and test are unchanged.

    They are the first `count` in `fixed_order`, so a larger count includes all examples of a smaller one. They keep
    their order in the split: with all of them, training gives the same result as without a limit.

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
