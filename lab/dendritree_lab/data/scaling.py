"""How inputs are shifted and scaled before a model sees them, learned only from the training examples.

scikit-learn's StandardScaler divides by n and not n - 1, and knows neither images nor a limit: published results would
change with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dendritree.errors import FormatError

CLIP = 5.0
"""Standardized columns of a table are clipped here: a few districts of California have extreme room counts."""
SMALLEST_SD = 1e-6


@dataclass(frozen=True)
class Scaling:
    """Shift and scale: one mean and deviation for all inputs, per channel of an image, or per column of a table.

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
            raise FormatError(
                f"a scaling must have a mean for each input or channel: got {len(self.mean)} for {inputs}"
            )
        groups = x.reshape(len(x), len(self.mean), -1)  # (examples, channels or columns, pixels)
        mean, sd = (torch.tensor(values, dtype=x.dtype, device=x.device)[:, None] for values in (self.mean, self.sd))
        scaled = (groups - mean) / sd
        return (scaled if self.clip is None else scaled.clamp_(-self.clip, self.clip)).reshape(x.shape)

    def bounds(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and largest scaled value of inputs from `low` to `high`, rounded to three decimals."""
        ends = [(end - mean) / sd for end in (low, high) for mean, sd in zip(self.mean, self.sd, strict=True)]
        return round(min(ends), 3), round(max(ends), 3)
