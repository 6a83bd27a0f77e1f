"""`ConvNetwork`: one convolution, pooling and a read-out; the control that a user would pick for images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError, ShapeError, check_int, check_one_of
from ..layers import DendriticConv2d
from ..layers.activation import Activation, make_activation
from ..layers.linear import make_linear
from ..layers.neuron_layer import as_rows
from ..randomness import generator_on
from ..tree.levels import Branching
from ..wiring.image_orders import check_image_shape, image_of
from .network import Network, between, check_sizes
from .registry import register

RISING = (nn.ReLU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.Identity)
"""Monotonically increasing activations, LeakyReLU unless its slope is negative."""
MANY_FILTERS = 16
"""From this number on, a product of patches and filters is faster than torch's convolution of one channel."""


@register("conv-network", example={"in_features": 64, "hidden": [4], "out_features": 3, "kernel_size": 3, "pool": 2})
class ConvNetwork(Network):
    """One convolution, plain or dendritic, pooling and a linear read-out.

    Args:
        in_features: number of pixels, all channels.
        hidden: number of filters, a list of one.
        out_features: number of outputs.
        image_shape: (channels, height, width) of the inputs; a square image of one channel by default.
        kernel_size: side of the filters; the image is padded by half of it.
        stride: pixels from one place of a filter to the next.
        branching: None for plain filters; the tree of dendritic ones, as in `DendriticConv2d`.
        fan_in: synapses of a dendritic filter, drawn from its patch; all of the patch by default.
        pool: the maximum of a filter is taken in `pool` x `pool` parts of the image.
        norm: `"batch"` normalization of each filter's output, or None.
        dropout: probability of silencing a feature while training.
        activation: of the filters, as in `DendriticLayer`.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Conv2d`.

    Example:
        >>> net = ConvNetwork(3072, [75], image_shape=(3, 32, 32), stride=2, norm="batch")
        >>> net(torch.randn(5, 3072)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([5, 10]), 17860)
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        image_shape: Sequence[int] | None = None,
        kernel_size: int = 5,
        stride: int = 1,
        branching: Branching | None = None,
        fan_in: int | None = None,
        pool: int = 4,
        norm: str | None = None,
        dropout: float = 0.0,
        activation: Activation = "relu",
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        inputs, *filters, outputs = check_sizes(in_features, hidden, out_features)
        if len(filters) != 1:
            raise OptionError(f"hidden must be a list with the number of filters: got {hidden!r}")
        if fan_in is not None and branching is None:
            raise OptionError(f"fan_in is for filters with a branching: got fan_in {fan_in!r} without one")
        shape = image_of(check_image_shape(image_shape), inputs, "conv-network", kind="model")
        kernel, step, parts = (
            check_int(name, value) for name, value in (("kernel_size", kernel_size), ("stride", stride), ("pool", pool))
        )
        places = [(side + 2 * (kernel // 2) - kernel) // step + 1 for side in shape[1:]]
        if min(places) < parts:
            raise ShapeError(f"pool must be at most the {min(places)} places of a filter along a side: got {parts}")
        features = filters[0] * parts**2
        placed: dict[str, Any] = {"device": device, "dtype": dtype}
        steps: list[nn.Module] = [nn.Unflatten(-1, shape)]
        if branching is None:
            steps.append(_Convolution(shape[0], filters[0], kernel, step, kernel // 2, **placed))
        else:
            trees: dict[str, Any] = {"branching": branching, "activation": activation, "root_activation": False}
            trees |= {"ragged": True} if fan_in is None else {"wiring": "random", "fan_in": fan_in}
            steps.append(DendriticConv2d(shape[0], filters[0], kernel, step, kernel // 2, **trees, **placed))
        if norm is not None:
            check_one_of("norm", norm, ("batch",))
            steps.append(nn.BatchNorm2d(filters[0], **placed))
        last = [make_activation(activation), nn.AdaptiveMaxPool2d(parts)]
        # With an increasing activation, pooling first gives the same result in half the time.
        steps += [*(reversed(last) if _rises(last[0]) else last), nn.Flatten(-3)]
        steps += between(features, None, dropout, device, dtype)
        super().__init__(steps, make_linear(features, outputs, device, dtype), output)
        self.in_features = inputs

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes."""
        rows = as_rows(x, self.in_features, self.readout.weight.dtype)  # type: ignore[arg-type]
        y = super().forward(rows)
        return y.reshape(*x.shape[:-1], *y.shape[1:])


def _rises(activation: nn.Module) -> bool:
    """Whether an activation is known to be monotonically increasing."""
    return type(activation) in RISING and getattr(activation, "negative_slope", 0) >= 0


class _Convolution(nn.Conv2d):
    """A convolution with He initialization for its weights and biases of 0, as in `make_linear`."""

    def reset_parameters(self) -> None:
        """Redraw the weights."""
        if not self.weight.is_meta:
            nn.init.kaiming_normal_(self.weight, nonlinearity="relu", generator=generator_on(self.weight.device))
        nn.init.zeros_(self.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with channels last in memory: pooling is vectorized there, a step takes 0.6 to 0.8 of the time.

        From one channel torch makes channels first, whatever it is given. There, while training, one product of patches
        and filters takes half of the time of the convolution, pooling and gradients, unless filters are few.
        """
        if self.training and self.in_channels == 1 and self.out_channels >= MANY_FILTERS and x.dim() == 4:
            (side, _), (step, _) = self.kernel_size, self.stride
            patches = F.pad(x[:, 0], (side // 2,) * 4).unfold(1, side, step).unfold(2, side, step)
            rows = F.linear(patches.flatten(3), self.weight.flatten(1), self.bias)
            return rows.permute(0, 3, 1, 2)  # (batch, filters, height, width)
        return super().forward(x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x)
