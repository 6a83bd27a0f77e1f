"""Stacks of stages for an image and a budget: the best known dendritic network, and the controls of the same size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..errors import OptionError, check_int
from ..layers.activation import Activation
from ..wiring.image_orders import check_image_shape, image_of
from .conv_network import ConvNetwork
from .registry import create_model, register
from .sizing import fill_budget, parameters_of, parse_count

GROWTH = 1.4
"""How much wider a stage is than the one before it."""
STAGES_FROM_SIDE = ((48, 4), (20, 3), (8, 2), (1, 1))
"""The number of stages by the shorter side of the image, in pixels."""
POOLS = (3, 2, 1)
"""Parts per side of the last maps that the read-out sees, largest first: it takes at most half of the parameters."""
FULL = 0.95
"""The share of a budget that a network fills."""


def image_options(
    image_shape: Sequence[int],
    out_features: int,
    *,
    budget: int | str,
    stage: str = "dendritic",
    depth: int | None = None,
    activation: Activation = "relu",
    dropout: float = 0.0,
) -> dict[str, Any]:
    """The arguments of the `ConvNetwork` for an image and a budget.

    >>> options = image_options((1, 28, 28), 10, budget=2000)
    >>> options["hidden"], options["pool"]
    ([5, 7, 10], 3)
    """
    shape = check_image_shape(tuple(image_shape))
    assert shape is not None
    outputs, most = check_int("out_features", out_features), parse_count("budget", budget)
    fallback = None
    for stages, pool in _candidates(shape):
        options: dict[str, Any] = {
            "in_features": math.prod(shape),
            "out_features": outputs,
            "image_shape": list(shape),  # as read from a file
            "stage": stage,
            "depth": depth,
            "activation": activation,
            "pool": pool,
            "dropout": dropout,
        }
        proportions = tuple(round(GROWTH**number, 2) for number in range(stages))
        hidden = fill_budget("conv-network", options, proportions, most)
        if hidden is None:
            continue
        network = create_model("conv-network", **options, hidden=hidden, device="meta")
        filled, readout = parameters_of(network), parameters_of(network.readout)  # type: ignore[arg-type]
        if filled >= FULL * most and 2 * readout <= filled:
            return options | {"hidden": hidden}
        if fallback is None or filled > fallback[0]:
            fallback = filled, options | {"hidden": hidden}
    if fallback is None:
        raise OptionError(f"budget must leave room for two neurons per stage on images {shape}: got {most:,}")
    return fallback[1]


def _candidates(shape: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """Numbers of stages and of parts of the last maps, the best first."""
    side = min((n for n in shape[1:] if n > 1), default=1)
    most = next(stages for least, stages in STAGES_FROM_SIDE if side >= least)
    return itertools.product(range(most, 0, -1), POOLS)


def image_for(in_features: int | None, image_shape: Sequence[int] | None, name: str) -> tuple[int, int, int]:
    """The shape of the images of a preset, from either argument.

    >>> image_for(None, [3, 8, 8], "cnn"), image_for(784, None, "cnn")
    ((3, 8, 8), (1, 28, 28))
    """
    shape = check_image_shape(None if image_shape is None else tuple(image_shape))
    if shape is None and in_features is None:
        raise OptionError(f"model {name!r} needs image_shape, (channels, height, width): got none")
    pixels = math.prod(shape or ()) if in_features is None else check_int("in_features", in_features)
    return image_of(shape, pixels, name, kind="model")


@register("cnn", example={"in_features": 144, "out_features": 3, "budget": 700})
def cnn_preset(
    in_features: int | None = None,
    out_features: int = 10,
    *,
    budget: int | str,
    image_shape: Sequence[int] | None = None,
    stage: str = "plain",
    depth: int | None = None,
    activation: Activation = "relu",
    dropout: float = 0.0,
    output: str = "logits",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> ConvNetwork:
    """A CNN for images with at most `budget` parameters: the control of the deep dendritic network of that size.

    Args:
        in_features: number of pixels, all channels; may be left out if `image_shape` is given.
        image_shape: (channels, height, width); a square image of one channel by default.
        stage: `"plain"`, `"separable"`, `"blueprint"` or `"linear"`, as in `ConvNetwork`.
        depth: convolutions per plain stage, or levels of a linear tree, as in `ConvNetwork`.
        out_features, budget, activation, dropout, output, device, dtype: as in `dendritic_preset`.

    Example:
        >>> net = cnn_preset(image_shape=(3, 32, 32), budget="18k")
        >>> net(torch.randn(5, 3, 32, 32)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([5, 10]), 17983)
    """
    shape = image_for(in_features, image_shape, "cnn")
    options = image_options(
        shape, out_features, budget=budget, stage=stage, depth=depth, activation=activation, dropout=dropout
    )
    return ConvNetwork(**options, output=output, device=device, dtype=dtype)
