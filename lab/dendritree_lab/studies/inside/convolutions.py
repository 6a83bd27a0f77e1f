"""Replacements for a block of two 3 x 3 convolutions, which map images to images with as many channels.

All take the place and a width, which determines the number of parameters.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dendritree.layers import DendriticConv2d

from .blocks import Shuffle
from .place import GROUPS, Place


def _block(first: nn.Module, second: nn.Module, between: int, last: int) -> nn.Module:
    return nn.Sequential(first, nn.BatchNorm2d(between), nn.ReLU(), second, nn.BatchNorm2d(last))


def _conv(ins: int, outs: int, kernel: int = 3, **options: Any) -> nn.Module:
    return nn.Conv2d(ins, outs, kernel, padding=kernel // 2, bias=False, **options)


def narrow(place: Place, width: int) -> nn.Module:
    """The original, with `width` channels between its convolutions."""
    return _block(_conv(place.size, width), _conv(width, place.size), width, place.size)


def low_rank(place: Place, width: int) -> nn.Module:
    """Convolutions to fewer channels and back, twice."""
    halves = [nn.Sequential(_conv(place.size, width), _conv(width, place.size, 1)) for _ in range(2)]
    return _block(halves[0], halves[1], place.size, place.size)


def grouped(place: Place, width: int) -> nn.Module:
    """Convolutions in groups; channels are shuffled between the groups."""
    middle = GROUPS * width
    first = nn.Sequential(_conv(place.size, middle, groups=GROUPS), Shuffle(GROUPS, 1))
    second = nn.Sequential(_conv(middle, place.size, groups=GROUPS), Shuffle(GROUPS, 1))
    return _block(first, second, middle, place.size)


def separable(place: Place, width: int) -> nn.Module:
    """Depthwise-separable convolutions: weigh places first, then mix channels."""
    first = nn.Sequential(_conv(place.size, place.size, groups=place.size), _conv(place.size, width, 1))
    second = nn.Sequential(_conv(width, width, groups=width), _conv(width, place.size, 1))
    return _block(first, second, width, place.size)


def blueprint(place: Place, width: int) -> nn.Module:
    """Separable convolutions in reverse: mix channels first, then weigh places (Haase and Amthor 2020)."""
    first = nn.Sequential(_conv(place.size, width, 1), _conv(width, width, groups=width))
    second = nn.Sequential(_conv(width, place.size, 1), _conv(place.size, place.size, groups=place.size))
    return _block(first, second, width, place.size)


def tied(place: Place, width: int, *, linear: bool = False) -> nn.Module:
    """Filters with one dendrite each, which reads half of the channels of a pixel, at 3 x 3 places."""

    def layer(ins: int, outs: int) -> nn.Module:
        options: dict[str, Any] = {"branching": [max(2, ins // 2)], "activation": None if linear else "leaky_relu"}
        return nn.Sequential(DendriticConv2d(ins, outs, 1, wiring="random", **options), _conv(outs, outs, groups=outs))

    return _block(layer(place.size, width), layer(width, place.size), width, place.size)


def neurons(place: Place, width: int, *, tree: bool) -> nn.Module:
    """Filters that read `width` of their patch's numbers."""
    options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [width]}
    options |= {"fan_in": width, "wiring": "random", "root_activation": False, "padding": 1}
    layers = [DendriticConv2d(place.size, place.size, 3, **options) for _ in range(2)]
    return _block(layers[0], layers[1], place.size, place.size)


def shared(place: Place, width: int) -> nn.Module:
    """Dendrites of one channel each, as many as channels, which all filters share; a filter reads `width` of them."""

    def layer() -> nn.Module:
        dendrites = nn.Conv2d(place.size, place.size, 3, padding=1, groups=place.size)
        somata = DendriticConv2d(place.size, place.size, 1, branching=[width], wiring="random", activation=None)
        return nn.Sequential(dendrites, nn.LeakyReLU(), somata)

    return _block(layer(), layer(), place.size, place.size)
