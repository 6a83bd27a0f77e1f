"""Modules that replacements are made of: block-diagonal matrices, gates, maxima, and views of neighboring rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Shuffle(nn.Module):
    """Distribute the features of every block over all blocks; a fixed permutation of a dimension.

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
    """A linear layer whose matrix is block-diagonal, initialized like `nn.Linear`.

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


class Gated(nn.Module):
    """value(x) * gelu(gate(x)): in every neuron, one dendrite multiplies another."""

    def __init__(self, value: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.value, self.gate = value, gate

    def forward(self, x: Tensor) -> Tensor:
        """One number per neuron."""
        y: Tensor = self.value(x) * F.gelu(self.gate(x))
        return y


class Largest(nn.Module):
    """The maximum over the dendrites of each neuron: over each `dendrites` consecutive inputs.

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


class Nearby(nn.Module):
    """A convolution over rows that have an order, so that a neuron reads its own row and those beside it.

    Args:
        convolution: over one dimension for a sequence, over two for a grid; must keep the size of a grid, and shorten
            a sequence by `past`.
        grid: (height, width) of the places; None for a sequence, in which a row sees only the rows before it.
        past: how many earlier rows of a sequence a row sees.

    >>> Nearby(nn.Conv1d(4, 6, 3), None, past=2)(torch.randn(5, 10, 4)).shape
    torch.Size([5, 10, 6])
    >>> Nearby(nn.Conv2d(4, 6, 3, padding=1), (3, 5))(torch.randn(2, 15, 4)).shape
    torch.Size([2, 15, 6])
    """

    def __init__(self, convolution: nn.Module, grid: tuple[int, int] | None, past: int = 0) -> None:
        super().__init__()
        self.convolution, self.grid, self.past = convolution, grid, past

    def forward(self, x: Tensor) -> Tensor:
        """(batch, places, features) to (batch, places, neurons)."""
        x = x.transpose(-1, -2)  # (batch, features, places)
        if self.grid is None:
            y: Tensor = self.convolution(F.pad(x, (self.past, 0)))
        else:
            y = self.convolution(x.reshape(*x.shape[:-1], *self.grid)).flatten(-2)
        return y.transpose(-1, -2).contiguous()  # or else the activation's gradient takes ten times as long


class Shift(nn.Module):
    """Take half of the features from the rows beside a row; no parameters.

    In a sequence, they come from the row before; in a grid, in equal parts from above, below, left and right. Rows
    outside are zeros.

    >>> Shift(None)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[[0.0, 2.0], [1.0, 4.0]]]
    """

    def __init__(self, grid: tuple[int, int] | None) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """(batch, places, features), of the same shape."""
        half = x.shape[-1] // 2
        moved, kept = x[..., :half], x[..., half:]
        if self.grid is None:
            return torch.cat([F.pad(moved, (0, 0, 1, -1)), kept], -1)
        sides = [(0, 0, 0, 0, 1, -1), (0, 0, 0, 0, -1, 1), (0, 0, 1, -1), (0, 0, -1, 1)]
        # (batch, height, width, an eighth of the features)
        parts = moved.reshape(*moved.shape[:-2], *self.grid, half).tensor_split(4, -1)
        return torch.cat([*(F.pad(*each).flatten(-3, -2) for each in zip(parts, sides, strict=True)), kept], -1)
