"""What may stand in the place of a network's feed-forward blocks and convolutions, and how large it may be.

A *part* maps rows or images to ones of the same size; every kind of it has one number, its width, which is as large as
a share of the original's parameters allows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import OptionError
from ...layers import DendriticConv2d, DendriticLayer
from ...models.sizing import parameters_of, widest

Build = Callable[[int, int, int], nn.Module]
"""(size of the rows or channels, hidden size of the original, width) -> the part."""

GROUPS = 4
"""Blocks of block-diagonal matrices, and groups of convolutions."""
UP_SYNAPSES = 16
"""Inputs that a neuron with a dense layer behind it reads."""


@dataclass(frozen=True)
class Kind:
    """A way to fill the place of a part."""

    title: str
    rows: Build | None
    """A feed-forward block; None where the kind has none."""
    images: Build | None
    """A block of two 3 x 3 convolutions."""
    dendritic: bool = False
    by_default: bool = True
    """False for one that is compared only where it is asked for."""


class Shuffle(nn.Module):
    """Deal the features of every block to all blocks; a fixed permutation of a dimension.

    >>> Shuffle(2, -1)(torch.arange(6)).tolist()
    [0, 3, 1, 4, 2, 5]
    """

    def __init__(self, blocks: int, dimension: int) -> None:
        super().__init__()
        self.blocks, self.dimension = blocks, dimension

    def forward(self, x: Tensor) -> Tensor:
        """The same numbers in another order."""
        last = x.movedim(self.dimension, -1)
        blocks = last.reshape(*last.shape[:-1], self.blocks, -1)  # (..., blocks, features of a block)
        return blocks.transpose(-1, -2).flatten(-2).movedim(-1, self.dimension)


class BlockLinear(nn.Linear):
    """A linear layer whose matrix is block-diagonal, with the law of `nn.Linear`.

    >>> sum(p.numel() for p in BlockLinear(8, 12, blocks=4).parameters())
    36
    """

    def __init__(self, in_features: int, out_features: int, *, blocks: int) -> None:
        super().__init__(in_features // blocks, out_features)
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        """W x + c, block by block."""
        weight = self.weight.reshape(self.blocks, -1, self.in_features)  # (blocks, outputs of a block, inputs of it)
        y = torch.einsum("...bi,boi->...bo", x.reshape(*x.shape[:-1], self.blocks, -1), weight)
        return y.flatten(-2) + self.bias


# ---------------------------------------------------------------------------------------------------- feed-forward


def _mlp(rows: int, _hidden: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(rows, width), nn.GELU(), nn.Linear(width, rows))


def _low_rank(rows: int, hidden: int, width: int) -> nn.Module:
    up = [nn.Linear(rows, width, bias=False), nn.Linear(width, hidden)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(hidden, width, bias=False), nn.Linear(width, rows))


def _blocks(rows: int, _hidden: int, width: int) -> nn.Module:
    hidden = GROUPS * width
    up, down = BlockLinear(rows, hidden, blocks=GROUPS), BlockLinear(hidden, rows, blocks=GROUPS)
    return nn.Sequential(up, nn.GELU(), Shuffle(GROUPS, -1), down, Shuffle(GROUPS, -1))


def _neurons(rows: int, hidden: int, width: int, *, tree: bool) -> nn.Module:
    """As many neurons as the original has; the width is how many inputs one of the hidden layer reads."""

    def layer(inputs: int, outputs: int, synapses: int) -> nn.Module:
        options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [synapses]}
        options |= {"fan_in": synapses, "wiring": "random", "root_activation": False}
        return DendriticLayer(inputs, outputs, **options)

    back = max(2, min(hidden, round(width * hidden / rows)))
    return nn.Sequential(layer(rows, hidden, min(width, rows)), nn.GELU(), layer(hidden, rows, back))


def _up_only(rows: int, _hidden: int, width: int) -> nn.Module:
    """Trees on the way up, a narrower dense layer on the way down."""
    trees = DendriticLayer(rows, width, fan_in=min(UP_SYNAPSES, rows), wiring="random", root_activation=False)
    return nn.Sequential(trees, nn.GELU(), nn.Linear(width, rows))


def _weighted_sums(rows: int, neurons: int, synapses: int) -> nn.Module:
    """Neurons that read a few inputs each, without an activation."""
    synapses = min(synapses, rows)
    return DendriticLayer(rows, neurons, branching=[synapses], wiring="random", activation=None)


class Gated(nn.Module):
    """value(x) * gelu(gate(x)): of every neuron, one dendrite multiplies another."""

    def __init__(self, value: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.value, self.gate = value, gate

    def forward(self, x: Tensor) -> Tensor:
        """One number per neuron."""
        y: Tensor = self.value(x) * nn.functional.gelu(self.gate(x))
        return y


class Largest(nn.Module):
    """The maximum of the dendrites of each neuron: `dendrites` inputs in a row.

    >>> Largest(2)(torch.tensor([1.0, 3.0, 5.0, 4.0])).tolist()
    [3.0, 5.0]
    """

    def __init__(self, dendrites: int) -> None:
        super().__init__()
        self.dendrites = dendrites

    def forward(self, x: Tensor) -> Tensor:
        """One number per neuron."""
        y: Tensor = x.reshape(*x.shape[:-1], -1, self.dendrites).amax(-1)  # (..., neurons)
        return y


def _gated(rows: int, _hidden: int, width: int) -> nn.Module:
    dendrites = [_weighted_sums(rows, width, UP_SYNAPSES // 2) for _ in range(2)]
    return nn.Sequential(Gated(*dendrites), nn.Linear(width, rows))


def _narrow_gated(rows: int, _hidden: int, width: int) -> nn.Module:
    return nn.Sequential(Gated(nn.Linear(rows, width), nn.Linear(rows, width)), nn.Linear(width, rows))


def _largest(rows: int, _hidden: int, width: int) -> nn.Module:
    dendrites = 2
    return nn.Sequential(
        _weighted_sums(rows, dendrites * width, UP_SYNAPSES // dendrites), Largest(dendrites), nn.Linear(width, rows)
    )


def _shared_dendrites(rows: int, _hidden: int, width: int) -> nn.Module:
    """As many dendrites as somata; every soma reads four of them, wherever they are."""
    dendrites = [_weighted_sums(rows, width, UP_SYNAPSES), nn.GELU()]
    return nn.Sequential(*dendrites, _weighted_sums(width, width, 4), nn.GELU(), nn.Linear(width, rows))


# ---------------------------------------------------------------------------------------------------- convolutions


def _convolutions(first: nn.Module, second: nn.Module, between: int, last: int) -> nn.Module:
    return nn.Sequential(first, nn.BatchNorm2d(between), nn.ReLU(), second, nn.BatchNorm2d(last))


def _conv(ins: int, outs: int, kernel: int = 3, **options: Any) -> nn.Module:
    return nn.Conv2d(ins, outs, kernel, padding=kernel // 2, bias=False, **options)


def _narrow_block(channels: int, _hidden: int, width: int) -> nn.Module:
    return _convolutions(_conv(channels, width), _conv(width, channels), width, channels)


def _low_rank_block(channels: int, _hidden: int, width: int) -> nn.Module:
    halves = [nn.Sequential(_conv(channels, width), _conv(width, channels, 1)) for _ in range(2)]
    return _convolutions(halves[0], halves[1], channels, channels)


def _grouped_block(channels: int, _hidden: int, width: int) -> nn.Module:
    middle = GROUPS * width
    first = nn.Sequential(_conv(channels, middle, groups=GROUPS), Shuffle(GROUPS, 1))
    second = nn.Sequential(_conv(middle, channels, groups=GROUPS), Shuffle(GROUPS, 1))
    return _convolutions(first, second, middle, channels)


def _separable_block(channels: int, _hidden: int, width: int) -> nn.Module:
    first = nn.Sequential(_conv(channels, channels, groups=channels), _conv(channels, width, 1))
    second = nn.Sequential(_conv(width, width, groups=width), _conv(width, channels, 1))
    return _convolutions(first, second, width, channels)


def _neuron_block(channels: int, _hidden: int, width: int, *, tree: bool) -> nn.Module:
    """Filters that read `width` of their patch's numbers."""
    options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [width]}
    options |= {"fan_in": width, "wiring": "random", "root_activation": False, "padding": 1}
    layers = [DendriticConv2d(channels, channels, 3, **options) for _ in range(2)]
    return _convolutions(layers[0], layers[1], channels, channels)


TREE, SPARSE = functools.partial(_neurons, tree=True), functools.partial(_neurons, tree=False)
TREE_BLOCK, SPARSE_BLOCK = functools.partial(_neuron_block, tree=True), functools.partial(_neuron_block, tree=False)

KINDS = {
    "narrow": Kind("fewer hidden units or channels", _mlp, _narrow_block),
    "low-rank": Kind("products of two thin matrices", _low_rank, _low_rank_block),
    "block": Kind("block-diagonal matrices, shuffled", _blocks, _grouped_block),
    "separable": Kind("depthwise-separable convolutions", None, _separable_block),
    "sparse": Kind("sparse neurons", SPARSE, SPARSE_BLOCK),
    "tree": Kind("dendritic trees", TREE, TREE_BLOCK, dendritic=True),
    "tree-up": Kind("dendritic trees on the way up only", _up_only, None, dendritic=True),
    "gated": Kind("one dendrite multiplies another", _gated, None, dendritic=True, by_default=False),
    "narrow-gated": Kind("fewer gated units", _narrow_gated, None, by_default=False),
    "max": Kind("the maximum of two dendrites", _largest, None, dendritic=True, by_default=False),
    "shared": Kind("somata that share dendrites", _shared_dendrites, None, dendritic=True, by_default=False),
}
"""Replacements by name; `narrow` at a share of 1 is the original."""
ORIGINAL = "narrow"


def make_part(kind: str, where: str, size: int, hidden: int, share: float) -> nn.Module | None:
    """A part of at most a share of the original's parameters; None if even the least of its kind is larger.

    Args:
        kind: a name of `KINDS`.
        where: `"rows"` or `"images"`.
        size: of rows, or channels of images.
        hidden: size between the two layers of the original.
        share: of the original's parameters.

    >>> part = make_part("tree", "rows", 64, 256, share=0.1)
    >>> parameters_of(part) <= 0.1 * parameters_of(make_part("narrow", "rows", 64, 256, share=1.0))
    True
    """
    build: Build | None = getattr(KINDS[kind], where)
    if build is None:
        raise OptionError(f"kind {kind!r} has no {where}: give one of {[k for k in KINDS if getattr(KINDS[k], where)]}")
    if kind == ORIGINAL and share == 1.0:
        return build(size, hidden, hidden)
    with torch.device("meta"):
        original = parameters_of(getattr(KINDS[ORIGINAL], where)(size, hidden, hidden))
    most = {"rows": size, "images": 9 * size}[where]

    def parameters(width: int) -> int:
        if kind in ("tree", "sparse") and width > most:
            return original + 1  # no neuron reads more than there is
        with torch.device("meta"):
            return parameters_of(build(size, hidden, width))

    width = widest(parameters, int(share * original), least=2)
    return None if width is None else build(size, hidden, width)
