"""What follows a layer of trees: a linear read-out, batch normalization."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Linear(nn.Linear):
    """`nn.Linear`, two or three times as fast after a layer that gives its output features-major, as trees do."""

    def forward(self, x: Tensor) -> Tensor:
        """W x + c."""
        if x.dim() == 2 and x.stride(0) == 1 < x.stride(1):
            if self.bias is None:
                return (self.weight @ x.t()).t()
            return torch.addmm(self.bias[:, None], self.weight, x.t()).t()
        return super().forward(x)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalization of the last dimension, whatever dimensions lead; `nn.BatchNorm1d` takes the second.

    >>> BatchNorm(8)(torch.randn(5, 7, 8)).shape
    torch.Size([5, 7, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """As `nn.BatchNorm1d` does it for a matrix."""
        if x.dim() == 2:
            return super().forward(x)
        return super().forward(x.reshape(-1, x.shape[-1])).reshape(x.shape)


def make_linear(
    in_features: int, out_features: int, device: torch.device | str | None, dtype: torch.dtype | None
) -> Linear:
    """A linear layer with He's law for its weights, N(0, 2 / fan-in), and biases of 0.

    >>> make_linear(3, 2, None, None).bias.tolist()
    [0.0, 0.0]
    """
    linear = Linear(in_features, out_features, device=device, dtype=dtype)
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
    # NOTE[DIFF]: the authors left PyTorch's default biases; zero on both sides keeps the comparison even.
    nn.init.zeros_(linear.bias)
    return linear
