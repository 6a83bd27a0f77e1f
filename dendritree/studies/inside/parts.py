"""Replacements for a network's feed-forward blocks and convolutions, and how large they may be.

A *part* maps rows or images to ones of the same size. Every kind of part has one free number, its width, which is as
large as a share of the original's parameters allows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ...errors import OptionError
from ...layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from ...models.sizing import parameters_of, widest
from ...wiring import Local, Tied
from .blocks import BlockLinear, Gated, Largest, Nearby, Shift, Shuffle

GROUPS = 4
"""Blocks of block-diagonal matrices, and groups of convolutions, if the size of the original is a multiple of it."""
UP_SYNAPSES = 16
"""Inputs that a neuron reads if a dense layer follows."""
REACH = 3
"""Rows of a sequence, or side of a square in a grid, from which a neuron reads if it reads neighbors."""
WINDOW = 5
"""Side of the windows in rows that are images themselves."""


@dataclass(frozen=True)
class Place:
    """The place of a part: the sizes of the original, and the order of what it reads."""

    where: str
    """`"rows"` for a feed-forward block, `"images"` for convolutions."""
    size: int
    """Features of the rows, or channels of the images."""
    hidden: int
    """Hidden size of the original."""
    sequence: bool = False
    """Whether the rows are a sequence, in which a row may see only those before it."""
    grid: tuple[int, int] | None = None
    """(height, width) if the rows are the places of an image."""
    plane: tuple[int, int] | None = None
    """(height, width) if each row is itself an image."""


Build = Callable[[Place, int], nn.Module]
"""(place, width) -> the part."""


@dataclass(frozen=True)
class Kind:
    """A kind of part."""

    title: str
    rows: Build | None
    """A feed-forward block; None if the kind has none."""
    images: Build | None
    """A block of two 3 x 3 convolutions; None if the kind has none."""
    dendritic: bool = False
    by_default: bool = True
    """False for a kind that is compared only on request."""


# ---------------------------------------------------------------------------------------------------- feed-forward


def _mlp(place: Place, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(place.size, width), nn.GELU(), nn.Linear(width, place.size))


def _low_rank(place: Place, width: int) -> nn.Module:
    up = [nn.Linear(place.size, width, bias=False), nn.Linear(width, place.hidden)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(place.hidden, width, bias=False), nn.Linear(width, place.size))


def _blocks(place: Place, width: int) -> nn.Module:
    size = place.size
    blocks = min((part for part in range(2, size + 1) if size % part == 0), key=lambda part: abs(part - GROUPS))
    up, down = BlockLinear(size, blocks * width, blocks=blocks), BlockLinear(blocks * width, size, blocks=blocks)
    return nn.Sequential(up, nn.GELU(), Shuffle(blocks, -1), down, Shuffle(blocks, -1))


def _neurons(place: Place, width: int, *, tree: bool) -> nn.Module:
    """As many neurons as the original has; the width is the number of inputs that a hidden neuron reads."""

    def layer(inputs: int, outputs: int, synapses: int) -> nn.Module:
        options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [synapses]}
        options |= {"fan_in": synapses, "wiring": "random", "root_activation": False}
        return DendriticLayer(inputs, outputs, **options)

    back = max(2, min(place.hidden, round(width * place.hidden / place.size)))
    return nn.Sequential(
        layer(place.size, place.hidden, min(width, place.size)), nn.GELU(), layer(place.hidden, place.size, back)
    )


def _up_only(place: Place, width: int, *, tree: bool = True, near: bool = False) -> nn.Module:
    """Neurons with a few synapses on the way up, a narrower dense layer on the way down.

    With `near`, synapses also read the rows beside a row, or a window of a row that is an image itself.
    """
    sequence, grid, plane = (place.sequence, place.grid, place.plane) if near else (False, None, None)
    window = min(WINDOW, *plane) if plane else 0
    inputs = window**2 if plane else place.size * (REACH if sequence else REACH**2 if grid else 1)
    synapses = min(UP_SYNAPSES, inputs)
    options: dict[str, Any] = {"fan_in": synapses, "branching": "auto" if tree else [synapses]}
    options |= {"wiring": Local(window=window, per="neuron", image_shape=(1, *plane)) if plane else "random"}
    options["root_activation"] = False
    up: nn.Module
    if sequence:
        up = Nearby(DendriticConv1d(place.size, width, REACH, **options), None, REACH - 1)
    elif grid:
        up = Nearby(DendriticConv2d(place.size, width, REACH, padding=REACH // 2, **options), grid)
    else:
        up = DendriticLayer(place.size, width, **options)
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, place.size))


def _shifted(place: Place, width: int) -> nn.Module:
    """A narrower block that reads half of its features from the rows beside a row."""
    ordered = place.sequence or place.grid
    return nn.Sequential(*[Shift(place.grid)] * bool(ordered), *_mlp(place, width))


def _over_rows(place: Place, features: int) -> nn.Module:
    """Weights for a row and those beside it, feature by feature; without an order of the rows, nothing."""
    if place.sequence:
        return Nearby(nn.Conv1d(features, features, REACH, groups=features), None, REACH - 1)
    if place.grid:
        return Nearby(nn.Conv2d(features, features, REACH, padding=REACH // 2, groups=features), place.grid)
    return nn.Identity()


def _tied(place: Place, width: int, *, linear: bool = False) -> nn.Module:
    """On the way up, the same dendrite at a row and those beside it, or at places of a row that is an image itself."""
    activation = None if linear else "leaky_relu"
    if place.plane:
        wiring, copies = Tied.fitted((1, *place.plane), window=REACH, stride=1, copies=REACH**2)
        options: dict[str, Any] = {"wiring": wiring, "activation": activation, "root_activation": False}
        up: nn.Module = DendriticLayer(place.size, width, branching=[wiring.window**2, copies], **options)
    else:
        ordered = place.sequence or place.grid
        dendrites = _weighted_sums(place.size, width, UP_SYNAPSES, activation if ordered else None)
        up = nn.Sequential(dendrites, _over_rows(place, width))
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, place.size))


def _mixed_first(place: Place, width: int) -> nn.Module:
    """The control for that: the same with dense, linear dendrites."""
    up = [nn.Linear(place.size, width), _over_rows(place, width)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(width, place.size))


def _weighted_sums(rows: int, neurons: int, synapses: int, activation: str | None = None) -> nn.Module:
    """Neurons that read a few inputs each, by default without an activation."""
    synapses = min(synapses, rows)
    return DendriticLayer(rows, neurons, branching=[synapses], wiring="random", activation=activation)


def _gated(place: Place, width: int) -> nn.Module:
    dendrites = [_weighted_sums(place.size, width, UP_SYNAPSES // 2) for _ in range(2)]
    return nn.Sequential(Gated(*dendrites), nn.Linear(width, place.size))


def _narrow_gated(place: Place, width: int) -> nn.Module:
    return nn.Sequential(
        Gated(nn.Linear(place.size, width), nn.Linear(place.size, width)), nn.Linear(width, place.size)
    )


def _largest(place: Place, width: int) -> nn.Module:
    dendrites = 2
    return nn.Sequential(
        _weighted_sums(place.size, dendrites * width, UP_SYNAPSES // dendrites),
        Largest(dendrites),
        nn.Linear(width, place.size),
    )


def _shared_dendrites(place: Place, width: int) -> nn.Module:
    """As many dendrites as somata; every soma reads four of them, wherever they are."""
    dendrites = [_weighted_sums(place.size, width, UP_SYNAPSES), nn.GELU()]
    return nn.Sequential(*dendrites, _weighted_sums(width, width, 4), nn.GELU(), nn.Linear(width, place.size))


# ---------------------------------------------------------------------------------------------------- convolutions


def _convolutions(first: nn.Module, second: nn.Module, between: int, last: int) -> nn.Module:
    return nn.Sequential(first, nn.BatchNorm2d(between), nn.ReLU(), second, nn.BatchNorm2d(last))


def _conv(ins: int, outs: int, kernel: int = 3, **options: Any) -> nn.Module:
    return nn.Conv2d(ins, outs, kernel, padding=kernel // 2, bias=False, **options)


def _narrow_block(place: Place, width: int) -> nn.Module:
    return _convolutions(_conv(place.size, width), _conv(width, place.size), width, place.size)


def _low_rank_block(place: Place, width: int) -> nn.Module:
    halves = [nn.Sequential(_conv(place.size, width), _conv(width, place.size, 1)) for _ in range(2)]
    return _convolutions(halves[0], halves[1], place.size, place.size)


def _grouped_block(place: Place, width: int) -> nn.Module:
    middle = GROUPS * width
    first = nn.Sequential(_conv(place.size, middle, groups=GROUPS), Shuffle(GROUPS, 1))
    second = nn.Sequential(_conv(middle, place.size, groups=GROUPS), Shuffle(GROUPS, 1))
    return _convolutions(first, second, middle, place.size)


def _separable_block(place: Place, width: int) -> nn.Module:
    first = nn.Sequential(_conv(place.size, place.size, groups=place.size), _conv(place.size, width, 1))
    second = nn.Sequential(_conv(width, width, groups=width), _conv(width, place.size, 1))
    return _convolutions(first, second, width, place.size)


def _blueprint_block(place: Place, width: int) -> nn.Module:
    """Separable convolutions in reverse: mix channels first, then weigh places (Haase and Amthor 2020)."""
    first = nn.Sequential(_conv(place.size, width, 1), _conv(width, width, groups=width))
    second = nn.Sequential(_conv(width, place.size, 1), _conv(place.size, place.size, groups=place.size))
    return _convolutions(first, second, width, place.size)


def _tied_block(place: Place, width: int, *, linear: bool = False) -> nn.Module:
    """Filters with one dendrite each, which reads half of the channels of a pixel, at 3 x 3 places."""

    def layer(ins: int, outs: int) -> nn.Module:
        options: dict[str, Any] = {"branching": [max(2, ins // 2)], "activation": None if linear else "leaky_relu"}
        return nn.Sequential(DendriticConv2d(ins, outs, 1, wiring="random", **options), _conv(outs, outs, groups=outs))

    return _convolutions(layer(place.size, width), layer(width, place.size), width, place.size)


def _neuron_block(place: Place, width: int, *, tree: bool) -> nn.Module:
    """Filters that read `width` of their patch's numbers."""
    options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [width]}
    options |= {"fan_in": width, "wiring": "random", "root_activation": False, "padding": 1}
    layers = [DendriticConv2d(place.size, place.size, 3, **options) for _ in range(2)]
    return _convolutions(layers[0], layers[1], place.size, place.size)


def _shared_block(place: Place, width: int) -> nn.Module:
    """Dendrites of one channel each, as many as channels, which all filters share; a filter reads `width` of them."""

    def layer() -> nn.Module:
        dendrites = nn.Conv2d(place.size, place.size, 3, padding=1, groups=place.size)
        somata = DendriticConv2d(place.size, place.size, 1, branching=[width], wiring="random", activation=None)
        return nn.Sequential(dendrites, nn.LeakyReLU(), somata)

    return _convolutions(layer(), layer(), place.size, place.size)


TREE, SPARSE = functools.partial(_neurons, tree=True), functools.partial(_neurons, tree=False)
TREE_NEAR = functools.partial(_up_only, near=True)
SPARSE_NEAR = functools.partial(_up_only, tree=False, near=True)
TIED_LINEAR, TIED_LINEAR_BLOCK = (functools.partial(build, linear=True) for build in (_tied, _tied_block))
TREE_BLOCK, SPARSE_BLOCK = functools.partial(_neuron_block, tree=True), functools.partial(_neuron_block, tree=False)

KINDS = {
    "narrow": Kind("fewer hidden units or channels", _mlp, _narrow_block),
    "low-rank": Kind("products of two thin matrices", _low_rank, _low_rank_block),
    "block": Kind("block-diagonal matrices, shuffled", _blocks, _grouped_block),
    "separable": Kind("depthwise-separable convolutions", None, _separable_block),
    "blueprint": Kind("dense layers, then weights for places", _mixed_first, _blueprint_block),
    "sparse": Kind("sparse neurons", SPARSE, SPARSE_BLOCK),
    "tree": Kind("dendritic trees", TREE, TREE_BLOCK, dendritic=True),
    "tree-up": Kind("dendritic trees on the way up only", _up_only, None, dendritic=True),
    "tree-near": Kind("the same, reading neighbors too", TREE_NEAR, None, dendritic=True),
    "sparse-near": Kind("sparse neurons on the way up, reading neighbors too", SPARSE_NEAR, None),
    "narrow-shift": Kind("fewer hidden units, half of the features from neighbors", _shifted, None),
    "tied": Kind("the same dendrite at neighboring places", _tied, _tied_block, dendritic=True),
    "tied-linear": Kind("the same with linear dendrites", TIED_LINEAR, TIED_LINEAR_BLOCK),
    "gated": Kind("one dendrite multiplies another", _gated, None, dendritic=True, by_default=False),
    "narrow-gated": Kind("fewer gated units", _narrow_gated, None, by_default=False),
    "max": Kind("the maximum of two dendrites", _largest, None, dendritic=True, by_default=False),
    "shared": Kind("somata that share dendrites", _shared_dendrites, _shared_block, dendritic=True, by_default=False),
}
"""Replacements by name; `narrow` at a share of 1 is the original."""
ORIGINAL = "narrow"


def make_part(kind: str, place: Place, share: float) -> nn.Module | None:
    """A part of at most a share of the original's parameters; None if even the smallest of its kind is larger.

    Args:
        kind: a name of `KINDS`.
        place: the place of the part.
        share: of the original's parameters.

    >>> place = Place("rows", 64, 256)
    >>> part = make_part("tree", place, share=0.1)
    >>> parameters_of(part) <= 0.1 * parameters_of(make_part("narrow", place, share=1.0))
    True
    """
    build: Build | None = getattr(KINDS[kind], place.where)
    if build is None:
        known = [name for name in KINDS if getattr(KINDS[name], place.where)]
        raise OptionError(f"kind {kind!r} has no {place.where}: give one of {known}")
    if kind == ORIGINAL and share == 1.0:
        return build(place, place.hidden)
    with torch.device("meta"):
        original = parameters_of(getattr(KINDS[ORIGINAL], place.where)(place, place.hidden))
    most = _most_synapses(kind, place)

    def parameters(width: int) -> int:
        if most is not None and width > most:
            return original + 1  # no neuron can read more inputs than there are
        with torch.device("meta"):
            return parameters_of(build(place, width))

    width = widest(parameters, int(share * original), least=2)
    return None if width is None else build(place, width)


def _most_synapses(kind: str, place: Place) -> int | None:
    """The number of inputs, for kinds whose width is a number of synapses; None for the others."""
    if kind in ("tree", "sparse"):
        return place.size if place.where == "rows" else 9 * place.size
    return place.size if (kind, place.where) == ("shared", "images") else None
