"""A network as a short list of inference steps, in float or in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..ops import PatchGrid
from ..tree import Forest

Array: TypeAlias = NDArray[np.float64]
Shape: TypeAlias = tuple[int, int, int]
"""(channels, height, width), in this order in memory; rows of n numbers are (n, 1, 1), a sequence has height 1."""


@dataclass(frozen=True)
class Act:
    """An activation: `"none"`, `"relu"`, `"leaky"` with a slope, `"tanh"` or `"sigmoid"`."""

    kind: str = "none"
    slope: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """Apply it."""
        functions: dict[str, Any] = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
        if self.kind == "leaky":
            return F.leaky_relu(x, self.slope)
        return x if self.kind == "none" else functions[self.kind](x)


@dataclass(frozen=True, eq=False)
class Conv:
    """A convolution and an activation. A linear map reads n channels of one number each; a scaling has n groups."""

    shape: Shape
    weight: Array
    """Shape (filters, channels of a group, rows, columns)."""
    bias: Array
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Left, right, top, bottom."""
    groups: int = 1
    act: Act = Act()
    ctype: str = "float"
    """C type of the results; as for trees and pooling."""
    rescale: NDArray[np.int64] | None = None
    """In integers, for each bias: an 11-bit multiplier, and above it a shift, that turn a sum into a result."""
    pre: int = 0
    """In integers: shift of the sums before they are multiplied."""

    @property
    def out(self) -> Shape:
        """Shape of the result."""
        (left, right, top, bottom), (_, height, width) = self.padding, self.shape
        rows = (height + top + bottom - self.weight.shape[2]) // self.stride[0] + 1
        return len(self.weight), rows, (width + left + right - self.weight.shape[3]) // self.stride[1] + 1

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one sample."""
        return math.prod(self.out) * int(self.weight[0].size)

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch, whose samples have at least as many numbers as `shape`."""
        x = F.pad(x.flatten(1)[:, : math.prod(self.shape)].reshape(-1, *self.shape), self.padding)
        weight, bias = torch.from_numpy(self.weight), torch.from_numpy(self.bias)
        return self.act(F.conv2d(x, weight, bias, self.stride, groups=self.groups))


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees that read all inputs, or the patches of a grid; the result is (neurons, rows, columns)."""

    shape: Shape
    weight: Array
    """One per weight of the forest."""
    bias: Array
    """One per bias of the forest."""
    forest: Forest
    act: Act
    """The activation of dendrites."""
    root: Act
    patches: PatchGrid | None = None
    """Patches without padding."""
    ctype: str = "float"
    rescale: NDArray[np.int64] | None = None
    pre: int = 0

    @property
    def out(self) -> Shape:
        """Shape of the result."""
        rows, columns = (1, 1) if self.patches is None else self.patches.counts(*self.shape[1:])
        return self.forest.neurons, rows, columns

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one sample."""
        return self.forest.edges * math.prod(self.out[1:])

    def nodes(self, x: Tensor) -> NDArray[np.float64]:
        """The value of every node, shape (batch times patches, nodes)."""
        f, x = self.forest, x.flatten(1)[:, : math.prod(self.shape)]
        if self.patches is not None:
            x = self.patches.copied(x.reshape(-1, *self.shape)).flatten(0, 1)
        rows = np.concatenate([x.numpy(), np.zeros((len(x), f.nodes))], axis=1)
        weight, bias, is_root = self.weight[f.weight_of_edge], self.bias[f.bias_of_node], np.zeros(f.nodes, bool)
        is_root[f.roots] = True
        for level, edges, begin in f.ascend():
            sums = np.add.reduceat(rows[:, f.source[edges]] * weight[edges], begin, axis=1) + bias[level]
            inner, root = (act(torch.from_numpy(sums)).numpy() for act in (self.act, self.root))
            rows[:, f.in_features + level.start : f.in_features + level.stop] = np.where(is_root[level], root, inner)
        return rows[:, f.in_features :]

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch."""
        y = torch.from_numpy(self.nodes(x)[:, self.forest.roots])
        return y.reshape(len(x), -1, self.forest.neurons).transpose(1, 2).reshape(-1, *self.out)


@dataclass(frozen=True, eq=False)
class Pool:
    """Max- or average pooling."""

    shape: Shape
    kind: str
    """`"max"` or `"average"`."""
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int] = (0, 0)
    count_padding: bool = True
    parts: tuple[int, int] | None = None
    """For adaptive pooling with unequal windows: their number along each axis."""
    ctype: str = "float"
    multiply_adds = 0

    @property
    def out(self) -> Shape:
        """Shape of the result."""
        sizes = zip(self.shape[1:], self.kernel, self.stride, self.padding, strict=True)
        rows, columns = self.parts or ((n + 2 * p - k) // s + 1 for n, k, s, p in sizes)
        return self.shape[0], rows, columns

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch."""
        x = x.reshape(-1, *self.shape)
        if self.parts is not None:
            return (F.adaptive_max_pool2d if self.kind == "max" else F.adaptive_avg_pool2d)(x, self.parts)
        if self.kind == "max":
            return F.max_pool2d(x, self.kernel, self.stride, self.padding)
        return F.avg_pool2d(x, self.kernel, self.stride, self.padding, count_include_pad=self.count_padding)


Step: TypeAlias = Conv | Trees | Pool


@dataclass(frozen=True, eq=False)
class Network:
    """The steps of a model, and what comes before and after them."""

    shape: Shape
    """The shape of the inputs."""
    steps: tuple[Step, ...]
    output: str = "none"
    """What is applied to the scores: `"softmax"`, `"sigmoid"` or `"none"`."""
    classifies: bool = True
    mean: Array | None = None
    """Means of inputs that are standardized with `deviation` and clipped at `clip`; None for raw inputs."""
    deviation: Array | None = None
    clip: float = 0.0
    bits: int | None = None
    """Bits per weight, or None for float."""
    ctype: str = "float"
    """C type of what the first step reads."""
    scale: Array | None = None
    """In integers, per channel: input = (number - zero) * scale."""
    zero: Array | None = None
    score_scale: float = 1.0
    """In integers: the scale from sums to scores."""

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one sample."""
        return sum(step.multiply_adds for step in self.steps)

    def run(self, x: Tensor) -> list[Tensor]:
        """The inputs as the first step reads them and the result of every step, in float64."""
        x = x.double().reshape(len(x), -1)
        if self.mean is not None and self.deviation is not None:
            x = ((x - torch.from_numpy(self.mean)) / torch.from_numpy(self.deviation)).clamp(-self.clip, self.clip)
        values = [x.reshape(-1, *self.shape)]
        for step in self.steps:
            values.append(step(values[-1]))
        return values


def scaling(shape: Shape, scale: Array | None = None, shift: Array | None = None, act: Act = Act()) -> Conv:  # noqa: B008
    """The step that multiplies each channel by `scale`, 1 by default, and adds `shift`, 0 by default."""
    weight = np.ones(shape[0]) if scale is None else scale
    return Conv(
        shape, weight.reshape(-1, 1, 1, 1), np.zeros(shape[0]) if shift is None else shift, groups=shape[0], act=act
    )


def is_scaling(step: Step) -> bool:
    """Whether each result is one input, scaled and shifted."""
    one = isinstance(step, Conv) and step.groups == step.shape[0] and step.weight.shape[2:] == (1, 1)
    return one and step.out == step.shape


def is_linear(step: Step) -> bool:
    """Whether it is a linear map of all inputs."""
    return isinstance(step, Conv) and step.groups == 1 and step.shape[1:] == step.out[1:] == (1, 1)
