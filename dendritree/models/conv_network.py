"""`ConvNetwork`: a stack of stages for images, made of dendritic neurons or of the convolutions of a control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from ..errors import OptionError, ShapeError, check_int, check_one_of
from ..layers import DendriticConv2d
from ..layers.activation import Activation, make_activation
from ..layers.images import Images, Stages
from ..layers.linear import make_linear
from ..randomness import generator_on
from ..wiring.image_orders import check_image_shape, image_of
from .network import Network, between, check_sizes
from .registry import register

STAGES = ("dendritic", "linear", "plain", "separable", "blueprint")
"""What the stages of a `ConvNetwork` are made of."""
LEAST_DEPTH = {"dendritic": 2, "linear": 2, "plain": 1}
"""The fewest levels of a stage; by default it has one more."""
FEW_CHANNELS = 4
"""Up to this number, the first stage of a separable network reads all channels at once, as usual."""
Pair = tuple[int, int]


@register("conv-network", example={"in_features": 64, "hidden": [4, 6], "out_features": 3, "pool": None})
class ConvNetwork(Network):
    """Stages that halve an image, average pooling, and a linear read-out.

    Each stage ends in batch normalization and the activation. A dendritic stage is a map of neurons with tied
    dendrites, `DendriticConv2d(..., places=3, depth=3, stride=2)`: in PyTorch's terms a convolution and `depth - 1`
    depthwise convolutions, the last one of stride 2, with batch normalization and an activation between them. The
    other stages are its controls.

    Args:
        in_features: number of pixels, all channels.
        hidden: neurons, or filters, of each stage.
        out_features: number of outputs.
        image_shape: (channels, height, width) of the inputs; a square image of one channel by default. A sequence is an
            image of height 1.
        stage: `"dendritic"`; `"linear"`, the same with linear dendrites; `"plain"`, a convolution and max-pooling;
            `"separable"`, a depthwise convolution of stride 2, then a pointwise one; `"blueprint"`, the reverse.
        kernel_size: side of the dendrites' windows or of the filters: an odd number, or one per stage.
        places: dendrites and branches stand at `places` x `places` places; for a plain stage, the side of max-pooling.
        depth: levels of a neuron's tree (2 or more, 3 by default), or convolutions per plain stage (2 by default); the
            other stages ignore it.
        activation: as in `DendriticLayer`.
        pool: the read-out sees averages of `pool` x `pool` parts of the last maps; None for all of the maps.
        dropout: probability of silencing an input of the read-out while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Conv2d`.

    Shape:
        - Input: images `(batch, channels, height, width)`, or rows of pixels `(batch, in_features)`.
        - Output: `(batch, out_features)`.

    Example:
        >>> net = ConvNetwork(3072, [20, 28, 40], image_shape=(3, 32, 32))
        >>> net(torch.randn(5, 3, 32, 32)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([5, 10]), 19382)
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        image_shape: Sequence[int] | None = None,
        stage: str = "dendritic",
        kernel_size: int | Sequence[int] = 3,
        places: int = 3,
        depth: int | None = None,
        activation: Activation = "relu",
        pool: int | None = 2,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        inputs, *filters, outputs = check_sizes(in_features, hidden, out_features)
        shape = image_of(check_image_shape(image_shape), inputs, "conv-network", kind="model")
        build = _STAGES[check_one_of("stage", stage, STAGES)]
        least = LEAST_DEPTH.get(stage, 0)
        levels = check_int("depth", least + 1 if depth is None else depth, least=least)
        kernels = list(kernel_size) if isinstance(kernel_size, Sequence) else [kernel_size] * len(filters)
        if len(kernels) != len(filters) or any(check_int("kernel_size", side) % 2 == 0 for side in kernels):
            raise OptionError(
                f"kernel_size must be an odd number, or one for each of {len(filters)} stages: got {kernel_size!r}"
            )
        make_activation(activation)  # rejects anything that is not an activation
        kind = _Kind(check_int("places", places), levels, activation, {"device": device, "dtype": dtype})
        steps: list[nn.Module] = [Images(shape)]
        channels, size = shape[0], (shape[1], shape[2])
        for number, (side, neurons) in enumerate(zip(kernels, filters, strict=True)):
            modules, after = build(channels, neurons, side, size, kind)
            if max(size) == 1 or min(after) < 1:
                raise ShapeError(
                    f"images must have room for {len(filters)} stages with places={places}: got "
                    f"{shape[1]} x {shape[2]}, too small for stage {number + 1}"
                )
            steps += modules
            channels, size = neurons, after
        if pool is not None:
            parts = min(check_int("pool", pool), size[0]), min(pool, size[1])
            steps += [] if parts == size else [nn.AdaptiveAvgPool2d(parts)]
            size = parts
        features = channels * size[0] * size[1]
        steps += [nn.Flatten(), *between(features, None, dropout, device, dtype)]
        super().__init__(steps, make_linear(features, outputs, device, dtype), output)
        self.hidden = Stages(*steps)
        self.in_features, self.image_shape = inputs, shape


# ----------------------------------------------------------------------------------------------------------- stages
# Each returns its modules and the size of their maps. Axes of one pixel are neither convolved nor halved nor pooled.


def _along(size: Pair, side: int) -> Pair:
    """A side for each axis: 1 along an axis of one pixel."""
    return (side if size[0] > 1 else 1, side if size[1] > 1 else 1)


def _half(side: Pair) -> Pair:
    return side[0] // 2, side[1] // 2


class _Kind(NamedTuple):
    """What all stages of a network have in common."""

    places: int
    depth: int
    activation: Activation
    placed: dict[str, Any]

    def ending(self, neurons: int) -> list[nn.Module]:
        """Batch normalization and the activation."""
        return [nn.BatchNorm2d(neurons, **self.placed), make_activation(self.activation)]

    def convolution(
        self, channels: int, filters: int, kernel: Pair, stride: int | Pair = 1, groups: int = 1
    ) -> list[nn.Module]:
        """A convolution that keeps the size of an image up to its stride, with its normalization and activation."""
        step = _Convolution(channels, filters, kernel, stride, _half(kernel), groups=groups, bias=False, **self.placed)
        return [step, *self.ending(filters)]


def _dendritic(
    channels: int, neurons: int, side: int, size: Pair, kind: _Kind, linear: bool = False
) -> tuple[list[nn.Module], Pair]:
    kernel, stride, places = _along(size, side), _along(size, 2), _along(size, kind.places)
    inner = kind.depth - 2  # levels of branches; they see zeros around the image, as dendrites do
    zeros = tuple(k // 2 + inner * (p - 1) // 2 for k, p in zip(kernel, places, strict=True))
    layer = DendriticConv2d(
        channels,
        neurons,
        kernel,
        stride,
        zeros,
        places=places,
        depth=kind.depth if max(places) > 1 else None,
        dendrite_norm="batch" if max(places) > 1 else None,
        bias=False,
        activation=None if linear else kind.activation,
        root_activation=False,
        **kind.placed,
    )
    reach = (k + (kind.depth - 1) * (p - 1) for k, p in zip(kernel, places, strict=True))
    after = tuple((n + 2 * z - r) // s + 1 for n, z, r, s in zip(size, zeros, reach, stride, strict=True))
    return [layer, *kind.ending(neurons)], after  # type: ignore[return-value]


def _linear(channels: int, neurons: int, side: int, size: Pair, kind: _Kind) -> tuple[list[nn.Module], Pair]:
    return _dendritic(channels, neurons, side, size, kind, linear=True)


def _plain(channels: int, neurons: int, side: int, size: Pair, kind: _Kind) -> tuple[list[nn.Module], Pair]:
    window, stride = _along(size, kind.places), _along(size, 2)
    zeros = tuple(p // 2 if p > s else 0 for p, s in zip(window, stride, strict=True))
    after = tuple((n + 2 * z - p) // s + 1 for n, z, p, s in zip(size, zeros, window, stride, strict=True))
    steps = kind.convolution(channels, neurons, _along(size, side))
    for _ in range(kind.depth - 1):
        steps += kind.convolution(neurons, neurons, _along(size, 3))
    # Pooling before ReLU gives the same result in less time.
    at = -1 if isinstance(steps[-1], nn.ReLU) else len(steps)
    steps.insert(at, nn.MaxPool2d(window, stride, zeros))
    return steps, after  # type: ignore[return-value]


def _separable(channels: int, neurons: int, side: int, size: Pair, kind: _Kind) -> tuple[list[nn.Module], Pair]:
    kernel, stride = _along(size, side), _along(size, 2)
    after = (size[0] - 1) // stride[0] + 1, (size[1] - 1) // stride[1] + 1
    if channels <= FEW_CHANNELS:
        return kind.convolution(channels, neurons, kernel, stride), after
    depthwise = kind.convolution(channels, channels, kernel, stride, groups=channels)
    return [*depthwise, *kind.convolution(channels, neurons, (1, 1))], after


def _blueprint(channels: int, neurons: int, side: int, size: Pair, kind: _Kind) -> tuple[list[nn.Module], Pair]:
    kernel, depthwise, stride = _along(size, side), _along(size, kind.places), _along(size, 2)
    kernel = kernel if channels <= FEW_CHANNELS else (1, 1)
    after = tuple((n + 2 * (p // 2) - p) // s + 1 for n, p, s in zip(size, depthwise, stride, strict=True))
    pointwise = kind.convolution(channels, neurons, kernel)[0]
    return [pointwise, *kind.convolution(neurons, neurons, depthwise, stride, groups=neurons)], after  # type: ignore[return-value]


_STAGES: dict[str, Callable[..., tuple[list[nn.Module], Pair]]] = {
    "dendritic": _dendritic,
    "linear": _linear,
    "plain": _plain,
    "separable": _separable,
    "blueprint": _blueprint,
}


class _Convolution(nn.Conv2d):
    """A convolution with He-initialized weights."""

    def reset_parameters(self) -> None:
        """Redraw the weights."""
        if not self.weight.is_meta:
            nn.init.kaiming_normal_(self.weight, nonlinearity="relu", generator=generator_on(self.weight.device))
