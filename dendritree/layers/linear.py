"""`Linear`: the read-out after a layer of trees."""

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
