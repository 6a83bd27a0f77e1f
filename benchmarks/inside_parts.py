"""Replacements for parts of deep networks: feed-forward blocks, which map rows to rows, and blocks of two convolutions.

Every kind of part has one free number, its width, which is as large as a share of the original's parameters allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dendritree.layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from dendritree.models.sizing import parameters_of, widest
from dendritree.wiring import Local, Tied

GROUPS = 4
"""Blocks of block-diagonal matrices and groups of convolutions, if the size of the original is a multiple of it."""
SYNAPSES = 16
"""Inputs that a neuron reads if a dense layer follows."""
REACH, WINDOW = 3, 5
"""Rows of a sequence or side of a square in a grid that a neuron reads; side of windows in rows that are images."""


@dataclass(frozen=True)
class PartShape:
    """Sizes of the original part, and the order of what it reads."""

    where: str
    """`"rows"` for a feed-forward block, `"images"` for convolutions."""
    size: int
    """Features of the rows, or channels of the images."""
    hidden: int
    """Hidden size of the original."""
    sequence: bool = False
    """Whether the rows are a sequence, in which a row may see only those before it."""
    grid: tuple[int, int] | None = None
    """(height, width) if the rows are the patches of an image."""
    plane: tuple[int, int] | None = None
    """(height, width) if each row is itself an image."""


class Shuffle(nn.Module):
    """Distribute the features of every block over all blocks: a fixed permutation of a dimension."""

    def __init__(self, blocks: int, dimension: int) -> None:
        super().__init__()
        self.blocks, self.dimension = blocks, dimension

    def forward(self, x: Tensor) -> Tensor:
        """The same numbers in another order."""
        last = x.movedim(self.dimension, -1)
        blocks = last.reshape(*last.shape[:-1], self.blocks, -1)  # (..., blocks, features of a block)
        return blocks.transpose(-1, -2).flatten(-2).movedim(-1, self.dimension)


class BlockLinear(nn.Linear):
    """A linear layer with a block-diagonal matrix."""

    def __init__(self, in_features: int, out_features: int, blocks: int) -> None:
        super().__init__(in_features // blocks, out_features)
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        """W x + c, block by block."""
        weight = self.weight.reshape(self.blocks, -1, self.in_features)  # (blocks, outputs of a block, inputs of it)
        y = torch.einsum("...bi,boi->...bo", x.reshape(*x.shape[:-1], self.blocks, -1), weight)
        return y.flatten(-2) + self.bias


class Nearby(nn.Module):
    """A convolution over ordered rows: a neuron reads its row and those beside it, in a sequence those before."""

    def __init__(self, convolution: nn.Module, grid: tuple[int, int] | None) -> None:
        super().__init__()
        self.convolution, self.grid = convolution, grid

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, features) to (batch, rows, neurons)."""
        x = x.transpose(-1, -2)  # (batch, features, rows)
        if self.grid is None:
            y = self.convolution(F.pad(x, (REACH - 1, 0)))
        else:
            y = self.convolution(x.reshape(*x.shape[:-1], *self.grid)).flatten(-2)
        return y.transpose(-1, -2).contiguous()  # or else the activation's gradient takes ten times as long


class Shift(nn.Module):
    """Take half of the features from the row before, or of a grid in equal parts from above, below, left and right."""

    def __init__(self, grid: tuple[int, int] | None) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, features), of the same shape."""
        half = x.shape[-1] // 2
        moved, kept = x[..., :half], x[..., half:]
        if self.grid is None:
            return torch.cat([F.pad(moved, (0, 0, 1, -1)), kept], -1)
        sides = [(0, 0, 0, 0, 1, -1), (0, 0, 0, 0, -1, 1), (0, 0, 1, -1), (0, 0, -1, 1)]
        # (batch, height, width, an eighth of the features)
        parts = moved.reshape(*moved.shape[:-2], *self.grid, half).tensor_split(4, -1)
        return torch.cat([*(F.pad(*each).flatten(-3, -2) for each in zip(parts, sides, strict=True)), kept], -1)


# ------------------------------------------------------------------------------------------------- feed-forward blocks


def _mlp(shape: PartShape, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(shape.size, width), nn.GELU(), nn.Linear(width, shape.size))


def _low_rank(shape: PartShape, width: int) -> nn.Module:
    up = [nn.Linear(shape.size, width, bias=False), nn.Linear(width, shape.hidden)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(shape.hidden, width, bias=False), nn.Linear(width, shape.size))


def _blocks(shape: PartShape, width: int) -> nn.Module:
    size = shape.size
    count = min((part for part in range(2, size + 1) if size % part == 0), key=lambda part: abs(part - GROUPS))
    up, down = BlockLinear(size, count * width, count), BlockLinear(count * width, size, count)
    return nn.Sequential(up, nn.GELU(), Shuffle(count, -1), down, Shuffle(count, -1))


def _neurons(shape: PartShape, width: int, *, tree: bool) -> nn.Module:
    """As many neurons as the original has, of which the hidden ones read `width` inputs."""

    def layer(inputs: int, outputs: int, synapses: int) -> nn.Module:
        options: dict[str, Any] = {"branching": "auto" if tree else [synapses], "fan_in": synapses}
        return DendriticLayer(inputs, outputs, wiring="random", root_activation=False, **options)

    back = max(2, min(shape.hidden, round(width * shape.hidden / shape.size)))
    up, down = layer(shape.size, shape.hidden, min(width, shape.size)), layer(shape.hidden, shape.size, back)
    return nn.Sequential(up, nn.GELU(), down)


def _up_only(shape: PartShape, width: int, *, tree: bool = True, near: bool = False) -> nn.Module:
    """Neurons with a few synapses on the way up; with `near`, these also read neighboring rows or a window."""
    sequence, grid, plane = (shape.sequence, shape.grid, shape.plane) if near else (False, None, None)
    window = min(WINDOW, *plane) if plane else 0
    inputs = window**2 if plane else shape.size * (REACH if sequence else REACH**2 if grid else 1)
    synapses = min(SYNAPSES, inputs)
    wiring = Local(window=window, per="neuron", image_shape=(1, *plane)) if plane else "random"
    options: dict[str, Any] = {"fan_in": synapses, "branching": "auto" if tree else [synapses], "wiring": wiring}
    options["root_activation"] = False
    up: nn.Module
    if sequence:
        up = Nearby(DendriticConv1d(shape.size, width, REACH, **options), None)
    elif grid:
        up = Nearby(DendriticConv2d(shape.size, width, REACH, padding=REACH // 2, **options), grid)
    else:
        up = DendriticLayer(shape.size, width, **options)
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, shape.size))


def _shifted(shape: PartShape, width: int) -> nn.Module:
    ordered = shape.sequence or shape.grid
    return nn.Sequential(*[Shift(shape.grid)] * bool(ordered), *_mlp(shape, width))


def _over_rows(shape: PartShape, features: int) -> nn.Module:
    """Weights for a row and those beside it, feature by feature; nothing for rows without an order."""
    if shape.sequence:
        return Nearby(nn.Conv1d(features, features, REACH, groups=features), None)
    if shape.grid:
        return Nearby(nn.Conv2d(features, features, REACH, padding=REACH // 2, groups=features), shape.grid)
    return nn.Identity()


def _tied(shape: PartShape, width: int, *, linear: bool = False) -> nn.Module:
    """On the way up, the same dendrite at neighboring rows, or at places of a row that is itself an image."""
    activation = None if linear else "leaky_relu"
    up: nn.Module
    if shape.plane:
        wiring, copies = Tied.fitted((1, *shape.plane), window=REACH, stride=1, copies=REACH**2)
        options: dict[str, Any] = {"wiring": wiring, "activation": activation, "root_activation": False}
        up = DendriticLayer(shape.size, width, branching=[wiring.window**2, copies], **options)
    else:
        options = {"branching": [min(SYNAPSES, shape.size)], "wiring": "random"}
        options["activation"] = activation if shape.sequence or shape.grid else None
        up = nn.Sequential(DendriticLayer(shape.size, width, **options), _over_rows(shape, width))
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, shape.size))


def _mixed_first(shape: PartShape, width: int) -> nn.Module:
    """The control of `tied`: dense, linear dendrites."""
    up = [nn.Linear(shape.size, width), _over_rows(shape, width)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(width, shape.size))


# ------------------------------------------------------------------------------------------- blocks of two convolutions


def _conv(ins: int, outs: int, kernel: int = 3, groups: int = 1) -> nn.Module:
    return nn.Conv2d(ins, outs, kernel, padding=kernel // 2, bias=False, groups=groups)


def _two_layers(size: int, width: int, layer: Callable[[int, int], list[nn.Module]]) -> nn.Module:
    """`layer` makes the modules from a number of channels to another."""
    first, second = nn.Sequential(*layer(size, width)), nn.Sequential(*layer(width, size))
    return nn.Sequential(first, nn.BatchNorm2d(width), nn.ReLU(), second, nn.BatchNorm2d(size))


def _narrow_conv(shape: PartShape, width: int) -> nn.Module:
    return _two_layers(shape.size, width, lambda ins, outs: [_conv(ins, outs)])


def _low_rank_conv(shape: PartShape, width: int) -> nn.Module:
    return _two_layers(shape.size, shape.size, lambda ins, outs: [_conv(ins, width), _conv(width, outs, 1)])


def _grouped_conv(shape: PartShape, width: int) -> nn.Module:
    def layer(ins: int, outs: int) -> list[nn.Module]:
        return [_conv(ins, outs, groups=GROUPS), Shuffle(GROUPS, 1)]

    return _two_layers(shape.size, GROUPS * width, layer)


def _separable_conv(shape: PartShape, width: int) -> nn.Module:
    return _two_layers(shape.size, width, lambda ins, outs: [_conv(ins, ins, groups=ins), _conv(ins, outs, 1)])


def _blueprint_conv(shape: PartShape, width: int) -> nn.Module:
    """Separable convolutions in reverse: mix channels first, then weigh pixels (Haase and Amthor 2020)."""
    return _two_layers(shape.size, width, lambda ins, outs: [_conv(ins, outs, 1), _conv(outs, outs, groups=outs)])


def _tied_conv(shape: PartShape, width: int, *, linear: bool = False) -> nn.Module:
    """Filters of one dendrite, which reads half of the channels of a pixel, at 3 x 3 pixels."""

    def layer(ins: int, outs: int) -> list[nn.Module]:
        options: dict[str, Any] = {"branching": [max(2, ins // 2)], "activation": None if linear else "leaky_relu"}
        return [DendriticConv2d(ins, outs, 1, wiring="random", **options), _conv(outs, outs, groups=outs)]

    return _two_layers(shape.size, width, layer)


def _neurons_conv(shape: PartShape, width: int, *, tree: bool) -> nn.Module:
    """Filters that read `width` of their patch's numbers."""
    options: dict[str, Any] = {"branching": "auto" if tree else [width], "fan_in": width, "wiring": "random"}
    options |= {"root_activation": False, "padding": 1}
    return _two_layers(shape.size, shape.size, lambda ins, outs: [DendriticConv2d(ins, outs, 3, **options)])


Build = Callable[[PartShape, int], nn.Module]
ORIGINAL = "narrow"
"""At a share of 1, this is the original."""
KINDS: dict[str, dict[str, Build]] = {
    "narrow": {"rows": _mlp, "images": _narrow_conv},
    "low-rank": {"rows": _low_rank, "images": _low_rank_conv},
    "block": {"rows": _blocks, "images": _grouped_conv},
    "separable": {"images": _separable_conv},
    "blueprint": {"rows": _mixed_first, "images": _blueprint_conv},
    "sparse": {"rows": partial(_neurons, tree=False), "images": partial(_neurons_conv, tree=False)},
    "tree": {"rows": partial(_neurons, tree=True), "images": partial(_neurons_conv, tree=True)},
    "tree-up": {"rows": _up_only},
    "tree-near": {"rows": partial(_up_only, near=True)},
    "sparse-near": {"rows": partial(_up_only, tree=False, near=True)},
    "narrow-shift": {"rows": _shifted},
    "tied": {"rows": _tied, "images": _tied_conv},
    "tied-linear": {"rows": partial(_tied, linear=True), "images": partial(_tied_conv, linear=True)},
}
"""Replacements by name, for what they read."""


def make_part(kind: str, shape: PartShape, divisor: int) -> nn.Module | None:
    """A part with at most 1 / divisor of the original's parameters; None if even the smallest of its kind has more."""
    build = KINDS[kind][shape.where]
    if kind == ORIGINAL and divisor == 1:
        return build(shape, shape.hidden)
    with torch.device("meta"):
        original = parameters_of(KINDS[ORIGINAL][shape.where](shape, shape.hidden))
    inputs = shape.size if shape.where == "rows" else REACH**2 * shape.size

    def parameters(width: int) -> int:
        if kind in ("tree", "sparse") and width > inputs:
            return original + 1  # the width is a number of synapses, and no neuron can read more than there are
        with torch.device("meta"):
            return parameters_of(build(shape, width))

    width = widest(parameters, int(1 / divisor * original), least=2)
    return None if width is None else build(shape, width)
