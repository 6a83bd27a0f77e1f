"""The shape of data in this project: examples, and their three parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ShapeError

__all__ = ["Examples", "Split"]


@dataclass(frozen=True)
class Examples:
    """Inputs, one per row of `x`, and what they should give."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def to(self, device: torch.device | str) -> Examples:
        """The same examples on a device."""
        return Examples(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Split:
    """Examples to train on, to choose by, and to judge by once."""

    train: Examples
    val: Examples
    test: Examples

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            part: Examples = getattr(self, name)
            if len(part.x) != len(part.y) or part.x.shape[1:] != self.train.x.shape[1:]:
                raise ShapeError(
                    f"{name} must have one y for each x, of the shape of the training inputs: got x "
                    f"{tuple(part.x.shape)}, y {tuple(part.y.shape)}"
                )
