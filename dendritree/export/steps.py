"""A network as a short list of plain steps: what is left of it for inference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
"""(channels, height, width); rows of n numbers are (n, 1, 1), a sequence has height 1."""


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
    """A convolution and an activation. A linear map is one whose kernel is as large as its input."""

    shape: Shape
    weight: Array
    """Shape (filters, channels of a group, rows, columns)."""
    bias: Array
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Left, right, top, bottom."""
    groups: int = 1
    act: Act = Act()
    out: Shape = (0, 0, 0)
    """Shape of the result."""

    def __post_init__(self) -> None:
        if not self.out[0]:
            left, right, top, bottom = self.padding
            rows = (self.shape[1] + top + bottom - self.weight.shape[2]) // self.stride[0] + 1
            columns = (self.shape[2] + left + right - self.weight.shape[3]) // self.stride[1] + 1
            object.__setattr__(self, "out", (len(self.weight), rows, columns))

    @property
    def covers(self) -> bool:
        """Whether it is a linear map of all inputs."""
        return self.groups == 1 and self.weight.shape[1:] == self.shape and not any(self.padding)

    @property
    def is_elementwise(self) -> bool:
        """Whether each result is one input, scaled and shifted."""
        one_each = self.groups == self.shape[0] == len(self.weight) and self.weight[0].size == 1
        return one_each and self.stride == (1, 1) and not any(self.padding)

    @property
    def multiply_adds(self) -> int:
        """For one sample."""
        return math.prod(self.out) * int(self.weight[0].size)

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch of shape (batch, *shape)."""
        x = F.pad(x.reshape(-1, *self.shape), self.padding)
        y = F.conv2d(x, torch.from_numpy(self.weight), torch.from_numpy(self.bias), self.stride, groups=self.groups)
        return self.act(y).reshape(-1, *self.out)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees that read all inputs, or the patches of a grid; the result is (neurons, rows, columns)."""

    shape: Shape
    forest: Forest
    weight: Array
    """One per weight of the forest."""
    bias: Array
    """One per bias of the forest."""
    act: Act
    root: Act
    patches: PatchGrid | None = None

    @property
    def out(self) -> Shape:
        """Shape of the result."""
        rows, columns = (1, 1) if self.patches is None else self.patches.counts(*self.shape[1:])
        return self.forest.neurons, rows, columns

    @property
    def multiply_adds(self) -> int:
        """For one sample."""
        return self.forest.edges * math.prod(self.out[1:])

    def nodes(self, x: Tensor) -> NDArray[np.float64]:
        """The value of every node, shape (rows, nodes), where `x` has the inputs of one set of trees in a row."""
        f, rows = self.forest, np.concatenate([x.numpy(), np.zeros((len(x), self.forest.nodes))], axis=1)
        weight, bias, is_root = self.weight[f.weight_of_edge], self.bias[f.bias_of_node], np.zeros(f.nodes, bool)
        is_root[f.roots] = True
        for level, edges, begin in f.ascend():
            sums = np.add.reduceat(rows[:, f.source[edges]] * weight[edges], begin, axis=1) + bias[level]
            both = [act(torch.from_numpy(sums)).numpy() for act in (self.act, self.root)]
            rows[:, f.in_features + level.start : f.in_features + level.stop] = np.where(is_root[level], *both[::-1])
        return rows[:, f.in_features :]

    def inputs(self, x: Tensor) -> Tensor:
        """The inputs of the trees, one row for each set of them."""
        x = x.reshape(-1, *self.shape)
        return (
            x.flatten(1)[:, : self.forest.in_features] if self.patches is None else self.patches.copied(x).flatten(0, 1)
        )

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch of shape (batch, *shape)."""
        y = torch.from_numpy(self.nodes(self.inputs(x))[:, self.forest.roots])
        return y.reshape(len(x), -1, self.forest.neurons).transpose(1, 2).reshape(-1, *self.out)


@dataclass(frozen=True, eq=False)
class Pool:
    """The largest or the average value of windows."""

    shape: Shape
    kind: str
    """`"max"` or `"average"`."""
    kernel: tuple[int, int] = (0, 0)
    stride: tuple[int, int] = (0, 0)
    padding: tuple[int, int] = (0, 0)
    count_padding: bool = True
    parts: tuple[int, int] | None = None
    """For adaptive pooling: the number of windows, which are as equal as possible."""

    @property
    def out(self) -> Shape:
        """Shape of the result."""
        if self.parts is not None:
            return self.shape[0], *self.parts
        sizes = zip(self.shape[1:], self.kernel, self.stride, self.padding, strict=True)
        rows, columns = ((n + 2 * p - k) // s + 1 for n, k, s, p in sizes)
        return self.shape[0], rows, columns

    multiply_adds = 0

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a batch of shape (batch, *shape)."""
        x = x.reshape(-1, *self.shape)
        if self.parts is not None:
            pool: Any = F.adaptive_max_pool2d if self.kind == "max" else F.adaptive_avg_pool2d
            return pool(x, self.parts)  # type: ignore[no-any-return]
        if self.kind == "max":
            return F.max_pool2d(x, self.kernel, self.stride, self.padding)
        return F.avg_pool2d(x, self.kernel, self.stride, self.padding, count_include_pad=self.count_padding)


Step: TypeAlias = Conv | Trees | Pool


@dataclass(frozen=True, eq=False)
class Network:
    """The steps of a model, and what comes before and after them."""

    shape: Shape
    """Of the inputs."""
    steps: tuple[Step, ...]
    output: str = "none"
    """`"softmax"` or `"sigmoid"` of the scores, or `"none"`."""
    mean: Array | None = None
    """Inputs are standardized, clipped at `clip`: their means, and `deviation`."""
    deviation: Array | None = None
    clip: float = 0.0
    classifies: bool = True

    @property
    def multiply_adds(self) -> int:
        """For one sample."""
        return sum(step.multiply_adds for step in self.steps)

    def prepared(self, x: Tensor) -> Tensor:
        """Inputs as the first step reads them."""
        x = x.double().reshape(len(x), -1)
        if self.mean is not None and self.deviation is not None:
            x = ((x - torch.from_numpy(self.mean)) / torch.from_numpy(self.deviation)).clamp(-self.clip, self.clip)
        return x.reshape(-1, *self.shape)

    def run(self, x: Tensor) -> list[Tensor]:
        """The prepared inputs and the result of every step, in float64; the last one has the scores."""
        values = [self.prepared(x)]
        for step in self.steps:
            values.append(step(values[-1]))
        return values

    def with_steps(self, steps: tuple[Step, ...]) -> Network:
        """The same network with other steps."""
        return replace(self, steps=steps)
