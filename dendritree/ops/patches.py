"""The patches of an image that a convolution reads, and the slow way to read them: by copying every patch."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from ..errors import ShapeError

__all__ = ["PatchGrid"]


class PatchGrid(NamedTuple):
    """Patches of one size, at equal distances, in an image with a border of zeros: what `nn.Conv2d` reads.

    >>> PatchGrid(channels=3, kernel=(5, 5), stride=(2, 2)).counts(28, 28)
    (12, 12)
    """

    channels: int
    kernel: tuple[int, int]
    """Rows and columns of a patch; all pairs are in this order."""
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Zeros beyond the left, right, upper and lower edge."""
    dilation: tuple[int, int] = (1, 1)

    @property
    def features(self) -> int:
        """The number of values in a patch."""
        return self.channels * self.kernel[0] * self.kernel[1]

    def counts(self, height: int, width: int) -> tuple[int, int]:
        """The number of patches per column and per row; raises for an image smaller than a patch."""
        left, right, top, bottom = self.padding
        padded, span = (height + top + bottom, width + left + right), self.span
        if height < 1 or width < 1 or padded[0] < span[0] or padded[1] < span[1]:
            raise ShapeError(
                f"an image must have pixels, and with its padding be at least as large as the kernel, "
                f"{span[0]} x {span[1]}: got {height} x {width}, padded {padded[0]} x {padded[1]}"
            )
        return (padded[0] - span[0]) // self.stride[0] + 1, (padded[1] - span[1]) // self.stride[1] + 1

    @property
    def span(self) -> tuple[int, int]:
        """Rows and columns from the first to the last pixel of a patch."""
        return self.dilation[0] * (self.kernel[0] - 1) + 1, self.dilation[1] * (self.kernel[1] - 1) + 1

    def check(self, x: Tensor) -> None:
        """Raise unless `x` is images with this many channels, each at least as large as a patch."""
        if x.dim() < 3 or x.shape[-3] != self.channels:
            raise ShapeError(
                f"the input must be images of shape (..., {self.channels}, height, width): got {tuple(x.shape)}"
            )
        self.counts(x.shape[-2], x.shape[-1])

    def copied(self, x: Tensor) -> Tensor:
        """All patches of images (..., channels, height, width), one per row: (images, patches, features).

        All images are passed to `unfold` as channels of a single image: on a GPU it would launch one kernel per image.
        """
        left, right, top, bottom = self.padding
        even = left == right and top == bottom
        images = x if x.dim() == 4 else x.reshape(-1, *x.shape[-3:])
        image = images.reshape(1, -1, *x.shape[-2:]) if images.shape[0] else images  # it rejects zero channels
        image = image if even else F.pad(image, self.padding)
        columns = F.unfold(image, self.kernel, self.dilation, (top, left) if even else 0, self.stride)
        return columns.reshape(images.shape[0], self.features, columns.shape[-1]).transpose(1, 2)

    def arranged(self, y: Tensor, x: Tensor) -> Tensor:
        """Outputs (images, patches, neurons) as images: (..., neurons, height, width) for images `x`."""
        counts = self.counts(x.shape[-2], x.shape[-1])
        images = y.transpose(1, 2).contiguous()
        return images.reshape(*x.shape[:-3], y.shape[-1], *counts)
