"""Quantization-aware training: the forward pass rounds weights and activations as `to_c` rounds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..errors import OptionError
from ..layers.forest_layer import ForestLayer
from ..layers.placed_layer import PlacedLayer

VALUES = 255
"""Steps of an activation's values."""


class Rounded(nn.Module):
    """Round weights to multiples of a scale per row, by which its largest is the top integer; pass gradients through.

    >>> Rounded(torch.tensor([0, 0, 1]), bits=4)(torch.tensor([7.0, 2.4, 0.3]))
    tensor([7.0000, 2.0000, 0.3000])
    """

    def __init__(self, rows: Tensor, bits: int) -> None:
        super().__init__()
        self.top = 2 ** (bits - 1) - 1
        self.register_buffer("rows", rows.reshape(-1), persistent=False)

    def forward(self, weight: Tensor) -> Tensor:
        """Rounded weights of the same shape."""
        rows: Any = self.rows
        size = weight.detach().abs().reshape(-1)
        largest = size.new_zeros(int(rows.max()) + 1).scatter_reduce(0, rows, size, "amax")
        scale = (largest / self.top).clamp_min(1e-12)[rows].view_as(weight)
        used: Tensor = weight + ((weight / scale).round() * scale - weight).detach()
        return used


def _rows(layer: Any, last: bool) -> Tensor:
    """The row of each weight of a layer: its filter or dendrite; scores, which are compared, share one row."""
    if not isinstance(layer, ForestLayer):
        return (torch.arange(len(layer.weight)) * (not last)).repeat_interleave(layer.weight[0].numel())
    if isinstance(layer, PlacedLayer) and layer._placement is not None:
        rows = torch.empty(layer.weight.numel(), dtype=torch.long)
        for number, (part, _) in enumerate(layer._placement.filters(torch.arange(len(rows)), None)):
            filters = torch.arange(len(part)) + number * len(part)
            rows[part.reshape(-1)] = filters.repeat_interleave(part[0].numel())
        return rows
    f = layer.forest
    node = torch.from_numpy(f.bias_of_node).long()
    rows = torch.empty(f.weights, dtype=torch.long)
    if last:
        node = torch.where(torch.isin(node, node[f.roots.tolist()]), node[f.roots[0]], node)
    rows[torch.from_numpy(f.weight_of_edge).long()] = node.repeat_interleave(torch.from_numpy(f.fan_ins).long())
    return rows


def _round_values(module: nn.Module, inputs: Any, values: Tensor) -> Tensor:
    """A forward hook that rounds the outputs of an activation to 8 bits."""
    del module, inputs
    top = VALUES if values.detach().min() >= 0 else VALUES // 2
    scale = (values.detach().abs().max() / top).clamp_min(1e-12)
    zero = torch.zeros(1, dtype=torch.int32, device=values.device)
    return torch.fake_quantize_per_tensor_affine(values, scale, zero, top - VALUES, top)


@contextmanager
def rounded(model: nn.Module, bits: int) -> Iterator[None]:
    """Within a block, round the weights of a model to `bits` bits, and the outputs of ReLU and LeakyReLU to 8 bits.

    Afterwards the weights keep their rounded values. Norms may follow a layer: they scale all weights of a row alike.

    >>> net = nn.Linear(2, 1)
    >>> with rounded(net, bits=4):
    ...     used = net.weight
    >>> torch.equal(net.weight, used)
    True
    """
    layers = [part for part in model.modules() if isinstance(part, ForestLayer | nn.Linear | nn.Conv1d | nn.Conv2d)]
    if not layers:
        raise OptionError(f"quantized training needs dendritic, linear or convolutional layers: {model} has none")
    acts = [part for part in model.modules() if isinstance(part, nn.ReLU | nn.LeakyReLU)]
    hooks = [part.register_forward_hook(_round_values) for part in dict.fromkeys(acts)]
    for layer in layers:
        rows = _rows(layer, layer is layers[-1]).to(layer.weight.device)
        parametrize.register_parametrization(layer, "weight", Rounded(rows, bits))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for layer in layers:
            parametrize.remove_parametrizations(layer, "weight")
