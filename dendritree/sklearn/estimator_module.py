"""A fitted estimator as one module: input scaling, network, output units."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CLIP = 5.0
"""Standardized inputs are clipped to this magnitude, so that one outlier does not dominate its column."""

Array = NDArray[np.float64]


class EstimatorModule(nn.Module):
    """A network between the scales of its inputs and outputs: raw rows in, predictions or probabilities out.

    Args:
        network: takes standardized rows; it is copied. Rows are scaled in float64: the network's own dtype may not
            distinguish two large numbers.
        scaler: the fitted `StandardScaler` of the rows.
        missing: columns with an indicator input for missing values (NaN).
        scale, shift: scale and shift of the outputs.
        probabilities: whether to convert logits (one for two classes, else one per class) to probabilities.
    """

    missing: Tensor
    mean: Tensor
    deviation: Tensor
    scale: Tensor
    shift: Tensor

    def __init__(
        self, network: nn.Module, scaler: Any, missing: Any, scale: Array, shift: Array, *, probabilities: bool
    ) -> None:
        super().__init__()
        self.in_features = len(scaler.mean_)
        self.network = copy.deepcopy(network)
        self.probabilities = probabilities
        parameter = next(network.parameters())
        self.dtype, device = parameter.dtype, parameter.device
        buffers = {"mean": scaler.mean_, "deviation": scaler.scale_, "scale": scale, "shift": shift}
        for name, values in buffers.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64, device=device))
        self.register_buffer("missing", torch.as_tensor(missing, device=device))
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Predictions of shape (rows, targets), or probabilities of shape (rows, classes)."""
        absent = x.isnan()
        standardized = torch.clamp((torch.where(absent, self.mean, x) - self.mean) / self.deviation, -CLIP, CLIP)
        if len(self.missing):
            standardized = torch.cat([standardized, absent[:, self.missing].to(standardized.dtype)], dim=1)
        outputs: Tensor = self.network(standardized.to(self.dtype)).double()
        if not self.probabilities:
            return outputs * self.scale + self.shift
        if outputs.shape[-1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=-1)
        return outputs.softmax(-1)

    def example(self, rows: int = 2) -> Tensor:
        """Random rows that this module accepts, about as far from the mean as the training rows."""
        random = torch.Generator().manual_seed(0)  # leaves torch's own generator unchanged
        draws = torch.randn(rows, self.in_features, generator=random, dtype=torch.float64)
        return self.mean + self.deviation * draws.to(self.mean.device)
