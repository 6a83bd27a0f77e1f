"""The best architecture for given sizes and a budget, according to our comparison (docs/comparison.md)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import OptionError, check_int, check_one_of
from ..layers.activation import Activation
from ..wiring import Local, Random, Tied, Wiring
from ..wiring.image_orders import check_image_shape
from .conv_network import ConvNetwork
from .image_presets import image_for, image_options
from .network import DendriticNetwork
from .registry import create_model, register
from .sizing import fill_budget, parameters_of, parse_count

PRESET_NEURONS = ("tree", "sparse")
MANY_OUTPUTS = 50
"""From this number on, the read-out takes most of the budget, which leaves few neurons: each has its own tree, whose
soma merges many dendrites."""
MERGED_DENDRITES = 6
WINDOW = 9
SMALL_SYNAPSES, LARGE_SYNAPSES, LARGE_BUDGET = 25, 36, 8000
GRAY, COLOR, COPIES = (16, 4, 1, 25), (27, 5, 2, 16), 25
"""For gray and for color images: synapses of a tied dendrite, its window and stride, and the number of neurons that
share a tree; then the number of copies of the dendrite."""
MANY_STRIDE = 2
"""The stride with many outputs: few neurons have to cover the image."""
TINY_IMAGE = 11
"""Smaller sides leave too little room for copies."""
LIKELY_SIDE = 20
"""From this side on, inputs that could fill a square image probably are one; tables are narrower."""
TABLE_SYNAPSES, TABLE_DENDRITES = 8, 4


@register("dendritic", example={"in_features": 16, "out_features": 3, "budget": 300})
def dendritic_preset(
    in_features: int | None = None,
    out_features: int = 10,
    *,
    budget: int | str,
    image_shape: Sequence[int] | None = None,
    neurons: str = "tree",
    depth: int | None = None,
    activation: Activation = "relu",
    dropout: float = 0.0,
    output: str = "logits",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> ConvNetwork | DendriticNetwork:
    """A network of the best known shape for these sizes, with at most `budget` parameters.

    Args:
        in_features: number of inputs; may be left out for images.
        out_features: number of outputs.
        budget: largest number of parameters, such as 8000 or "8k".
        image_shape: (channels, height, width) if the inputs are images; a sequence has height 1. The network is then a
            stack of dendritic stages, a `ConvNetwork`; otherwise it has one hidden layer, a `DendriticNetwork`.
        neurons: `"tree"`, or `"sparse"` for a hidden layer of neurons without dendrites, which did better on Adult.
        depth: levels of the trees in a stack of stages, 3 by default; 2 takes little more than half the time.
        activation: activation of a stack of stages; `"silu"` is more accurate on photographs, `"relu"` suits integers.
        dropout: probability of silencing an input of the read-out while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> net = dendritic_preset(image_shape=(1, 28, 28), budget=2000)
        >>> net(torch.randn(5, 1, 28, 28)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([5, 10]), 1928)
    """
    if image_shape is None or neurons != "tree":
        inputs = _inputs(in_features, image_shape)
        single = preset_options(
            inputs, out_features, budget=budget, image_shape=image_shape, neurons=neurons, dropout=dropout
        )
        _warn_of_pixels(inputs, image_shape)
        return DendriticNetwork(**single, output=output, device=device, dtype=dtype)
    shape = image_for(in_features, image_shape, "dendritic")
    options = image_options(shape, out_features, budget=budget, depth=depth, activation=activation, dropout=dropout)
    return ConvNetwork(**options, output=output, device=device, dtype=dtype)


@register("dendritic-single", example={"in_features": 16, "out_features": 3, "budget": 300})
def single_layer_preset(
    in_features: int | None = None,
    out_features: int = 10,
    *,
    budget: int | str,
    image_shape: Sequence[int] | None = None,
    neurons: str = "tree",
    dropout: float = 0.0,
    output: str = "logits",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> DendriticNetwork:
    """The best known network with one hidden layer for these sizes, with at most `budget` parameters.

    Args:
        in_features, out_features, budget, neurons, dropout, output, device, dtype: as in `dendritic_preset`.
        image_shape: (channels, height, width) if the inputs are the pixels of an image; they are then wired locally.
            If the image has room for the copies, dendrites share their weights (`Tied`), and with fewer than 50 outputs
            so do neurons at different places.

    Example:
        >>> net = single_layer_preset(image_shape=(1, 28, 28), budget=8000)
        >>> sum(p.numel() for p in net.parameters()) <= 8000
        True
    """
    inputs = _inputs(in_features, image_shape)
    options = preset_options(
        inputs, out_features, budget=budget, image_shape=image_shape, neurons=neurons, dropout=dropout
    )
    _warn_of_pixels(inputs, image_shape)
    return DendriticNetwork(**options, output=output, device=device, dtype=dtype)


def _inputs(in_features: int | None, image_shape: Sequence[int] | None) -> int:
    """The number of inputs, from either argument."""
    if in_features is None and image_shape is None:
        raise OptionError("a model needs in_features or image_shape, (channels, height, width): got neither")
    return math.prod(image_shape or ()) if in_features is None else in_features


def _warn_of_pixels(in_features: int, image_shape: Sequence[int] | None) -> None:
    """Warn if no image shape was given but the inputs could fill a square gray or color image."""
    for channels in (1, 3):
        side = math.isqrt(in_features // channels)
        if image_shape is None and side >= LIKELY_SIDE and channels * side**2 == in_features:
            wired = f"{in_features} inputs without image_shape are wired at random"
            warnings.warn(f"{wired}: if they are pixels, pass image_shape=({channels}, {side}, {side})", stacklevel=4)


def preset_options(
    in_features: int,
    out_features: int,
    *,
    budget: int | str,
    image_shape: Sequence[int] | None = None,
    neurons: str = "tree",
    dropout: float = 0.0,
) -> dict[str, Any]:
    """The arguments that `single_layer_preset` passes to `DendriticNetwork`.

    >>> preset_options(784, 10, budget=2000, image_shape=(1, 28, 28))["branching"]
    [16, 25]
    """
    in_features, out_features = check_int("in_features", in_features), check_int("out_features", out_features)
    budget = parse_count("budget", budget)
    check_one_of("neurons", neurons, PRESET_NEURONS)
    shape = check_image_shape(image_shape if image_shape is None else tuple(image_shape))
    branching, wiring = _architecture(in_features, out_features, budget, shape, neurons)
    options: dict[str, Any] = {
        "in_features": in_features,
        "out_features": out_features,
        "branching": branching,
        "wiring": wiring,
        "activation": activation_for(wiring),
        "norm": "batch",
        "dropout": dropout,
    }
    hidden = fill_budget("dendritic-network", options, (1.0,), budget)
    if hidden is None:
        least = parameters_of(create_model("dendritic-network", **options, hidden=[2], device="meta"))
        raise OptionError(f"budget must be at least {least:,} parameters for these sizes: got {budget:,}")
    return options | {"hidden": hidden}


def activation_for(wiring: Wiring) -> str:
    """The activation that suits a wiring: ReLU for tied dendrites, whose soma pools what they find."""
    return "relu" if isinstance(wiring, Tied) else "leaky_relu"


def tied_preset(shape: tuple[int, int, int], out_features: int) -> tuple[list[int], Tied] | None:
    """The tree and the wiring of the best known neurons with tied dendrites; None for tiny images.

    >>> tied_preset((3, 32, 32), 10)
    ([27, 25], Tied(window=5, stride=2, image_shape=(3, 32, 32), seed=None, shared_by=16))
    """
    if min(shape[1:]) < TINY_IMAGE:
        return None
    for synapses, window, stride, shared_by in (GRAY,) if shape[0] == 1 else (COLOR, GRAY):
        if out_features >= MANY_OUTPUTS:
            stride, shared_by = MANY_STRIDE, 1
        wiring, copies = Tied.fitted(shape, window=window, stride=stride, copies=COPIES, shared_by=shared_by)
        if (copies, wiring.stride) == (COPIES, stride):
            return [synapses, copies], wiring
    return None


def _architecture(
    in_features: int, out_features: int, budget: int, shape: tuple[int, int, int] | None, neurons: str
) -> tuple[list[Any], Wiring]:
    """The tree and its wiring."""
    if shape is None:
        synapses = max(2, min(in_features, TABLE_SYNAPSES))
        return ([synapses, TABLE_DENDRITES] if neurons == "tree" else [synapses]), Random()
    channels, height, width = shape
    tied = tied_preset(shape, out_features)
    if neurons == "tree" and tied is not None:
        return tied
    window = min(WINDOW, height, width)
    synapses = min(SMALL_SYNAPSES if budget < LARGE_BUDGET else LARGE_SYNAPSES, max(2, channels * window**2))
    wiring = Local(window=window, image_shape=shape)
    if neurons == "sparse":
        return [synapses], wiring
    if out_features >= MANY_OUTPUTS:
        return [synapses, MERGED_DENDRITES], wiring
    return [synapses, [max(2, synapses // 3)]], wiring
