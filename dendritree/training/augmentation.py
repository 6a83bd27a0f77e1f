"""Data augmentation for images: random flips and shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError
from .config import FitConfig
from .examples import Split


@dataclass(frozen=True)
class Augmentation:
    """Random flips and shifts of images, redrawn at every step.

    >>> Augmentation((1, 2, 3), flips=True, shifts=0)(torch.zeros(5, 6), torch.Generator()).shape
    torch.Size([5, 6])
    """

    image_shape: tuple[int, int, int]
    flips: bool
    shifts: int

    @classmethod
    def of(cls, config: FitConfig, model: nn.Module, split: Split) -> Augmentation | None:
        """The augmentation that a config requests, or None. Rows of pixels take the `image_shape` of the data or the
        model."""
        if not config.flips and not config.shifts:
            return None
        x = split.train.x
        shape: Any = (*(1,) * (4 - x.dim()), *x.shape[1:]) if x.dim() in (3, 4) else None
        shape = shape or getattr(split, "image_shape", None) or getattr(model, "image_shape", None)
        if shape is None:
            raise OptionError(
                "flips and shifts need images: x of shape (n, channels, height, width), or an image_shape of the data "
                f"or the model: got x {tuple(x.shape)} and {type(model).__name__}"
            )
        return cls(shape, config.flips, config.shifts)

    def __call__(self, x: Tensor, order: torch.Generator) -> Tensor:
        """An augmented copy of a batch, of the same shape."""
        images, device = x.reshape(-1, *self.image_shape), x.device
        if self.flips:
            flipped = torch.rand(len(images), 1, 1, 1, generator=order) < 0.5
            images = torch.where(flipped.to(device), images.flip(-1), images)
        if self.shifts:
            _, height, width = self.image_shape
            most = self.shifts
            down, right = torch.randint(0, 2 * most + 1, (2, len(images), 1), generator=order).to(device)
            rows, columns = down + torch.arange(height, device=device), right + torch.arange(width, device=device)
            padded = F.pad(images, (most,) * 4).permute(0, 2, 3, 1)  # (batch, rows, columns, channels)
            at = torch.arange(len(images), device=device)[:, None, None]
            images = padded[at, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return images.reshape(x.shape)
