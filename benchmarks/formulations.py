"""Other ways to compute the same trees with stock PyTorch, for comparison: each gives a `DendriticLayer`'s outputs.

They hold for balanced trees with shared inputs, the paper's classifiers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dendritree import DendriticLayer, ops
from dendritree.tree import Forest

__all__ = ["BlockDiagonal", "ForestModule", "GroupedConvolution", "SparseRows"]


class Levels(nn.Module):
    """The levels of a layer as separate parameters."""

    def __init__(self, layer: DendriticLayer) -> None:
        super().__init__()
        self.neurons, self.activation = layer.out_features, layer.activation
        forest = layer.forest
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for level in forest.levels:
            edges = slice(forest.offsets[level.start], forest.offsets[level.stop])
            fan_in = int(forest.fan_ins[level.start])
            self.weights.append(nn.Parameter(layer.weight.detach()[edges].reshape(-1, fan_in).clone()))
            assert layer.bias is not None
            self.biases.append(nn.Parameter(layer.bias.detach()[level].clone()))


class BlockDiagonal(Levels):
    """One small matmul per node: a block-diagonal matrix without its zeros."""

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (batch, neurons)."""
        rows = x.repeat(1, self.neurons)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            nodes, fan_in = weight.shape
            blocks = rows.reshape(-1, nodes, fan_in).transpose(0, 1)  # (nodes, batch, fan_in)
            rows = self.activation(torch.bmm(blocks, weight.unsqueeze(2)).squeeze(2).t() + bias)
        return rows


class GroupedConvolution(Levels):
    """A convolution of width one with as many groups as nodes."""

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (batch, neurons)."""
        rows = x.repeat(1, self.neurons).unsqueeze(2)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            rows = self.activation(F.conv1d(rows, weight.unsqueeze(2), bias, groups=len(weight)))
        return rows.squeeze(2)


class SparseRows(Levels):
    """A sparse CSR matrix per level. Forward only: its backward pass would be dense."""

    def __init__(self, layer: DendriticLayer) -> None:
        super().__init__(layer)
        self.matrices = []
        for i, weight in enumerate(self.weights):
            nodes, fan_in = weight.shape
            rows = nodes * fan_in
            columns = torch.arange(rows) % (layer.in_features if i == 0 else rows)  # level 1 reads shared inputs
            offsets = torch.arange(nodes + 1) * fan_in
            width = layer.in_features if i == 0 else rows
            values = weight.detach().reshape(-1)
            self.matrices.append(
                torch.sparse_csr_tensor(offsets, columns, values, (nodes, width), check_invariants=True)
            )

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (batch, neurons)."""
        rows = x.t().contiguous()
        for matrix, bias in zip(self.matrices, self.biases, strict=True):
            rows = self.activation(matrix @ rows + bias.unsqueeze(1))
        return rows.t()


class ForestModule(nn.Module):
    """Any wired forest as a module, for layers that `DendriticLayer` cannot build."""

    def __init__(self, forest: Forest) -> None:
        super().__init__()
        self.plan = ops.make_plan(forest)
        scale = (2 / torch.as_tensor(forest.fan_ins[forest.node_of_edge], dtype=torch.float32)).sqrt()
        self.weight = nn.Parameter(torch.randn(forest.edges) * scale)
        self.bias = nn.Parameter(torch.zeros(forest.nodes))
        self.activation = nn.LeakyReLU(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (batch, neurons)."""
        return ops.dendritic(x, self.weight, self.bias, self.plan, self.activation)
