"""The leaf level of neurons that read the same inputs is a batched matmul: here it is done as one.

`n` dendrites a neuron with `k` synapses each, shared by all neurons: `n` products of (neurons, k) and (k, samples). The
levels above are a forest of their own, with the leaf dendrites as its inputs, and go through the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..tree import Forest
from . import threads
from .launch import ITEM_SIZES, kernel, ranges, run_backward, run_forward, typed_activation, workers_for
from .program import Program, make_program

__all__ = ["Leaves", "backward", "forward", "make_leaves"]

LEAST_FAN_IN = 8
"""Synapses of a dendrite from which the matmul is faster than the kernel's own loop (measured: not at 4, at 16)."""

Options = tuple[str, float, bool, float]


@dataclass(frozen=True)
class Leaves:
    """A forest cut above its leaf level."""

    neurons: int
    dendrites: int
    """Leaf dendrites of each neuron."""
    fan_in: int
    synapses: int
    """Of all neurons."""
    upper: Program
    """The levels above; its input `d * neurons + i` is leaf dendrite `d` of neuron `i`."""


def make_leaves(forest: Forest) -> Leaves | None:
    """Cut a forest above its leaf level, if that is shared by all neurons, in input order, and wide enough.

    >>> make_leaves(Forest.grow(16, fan_in=256)) is None  # one neuron alone shares nothing
    True
    """
    level, neurons = forest.levels[0], forest.neurons
    count, fan_in = level.stop // neurons, int(forest.fan_ins[0])
    synapses = int(forest.offsets[level.stop])
    if (
        neurons < 2
        or len(forest.levels) < 2
        or fan_in < LEAST_FAN_IN
        or level.stop % neurons
        or forest.synapses != synapses
        or synapses != neurons * forest.in_features
        or (forest.fan_ins[level] != fan_in).any()
        or not np.array_equal(forest.source[:synapses], np.tile(np.arange(forest.in_features), neurons))
    ):
        return None
    child = forest.source[synapses:] - forest.in_features
    neuron, dendrite = np.divmod(child, count)
    inputs = level.stop
    source = np.where(child < inputs, dendrite * neurons + neuron, child)  # later nodes keep their numbers
    upper = Forest(inputs, source, forest.offsets[level.stop :] - synapses, forest.roots - inputs)
    return Leaves(neurons, count, fan_in, synapses, make_program(upper))


def _inputs(x: Tensor, leaves: Leaves) -> Tensor:
    """The inputs of each leaf dendrite as a matrix: (dendrites, fan_in, samples), without a copy where possible."""
    flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    sample, feature = flat.stride()
    return flat.as_strided((leaves.dendrites, leaves.fan_in, len(flat)), (leaves.fan_in * feature, feature, sample))


def _weights(weight: Tensor, leaves: Leaves) -> Tensor:
    """The weights of the leaf level: (dendrites, neurons, fan_in)."""
    neurons, dendrites, fan_in = leaves.neurons, leaves.dendrites, leaves.fan_in
    return weight.as_strided((dendrites, neurons, fan_in), (fan_in, dendrites * fan_in, 1))


def forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, leaves: Leaves, options: Options, y: Tensor
) -> tuple[Tensor, Tensor]:
    """Activations of the leaf dendrites, and of the nodes above them; the outputs go into `y`."""
    weight, bias = weight.contiguous(), None if bias is None else bias.contiguous()
    rows = torch.bmm(_weights(weight, leaves), _inputs(x, leaves)).flatten(0, 1)  # (dendrites * neurons, samples)
    _each_row("finish_rows", leaves, options, rows, (rows.data_ptr(), 0 if bias is None else bias.data_ptr()))
    upper, upper_bias = leaves.upper, None if bias is None else bias[len(rows) :]
    above = weight[leaves.synapses :]
    _, acts = run_forward(rows, above, upper_bias, upper.tables, upper.sizes, None, *options, y)
    return rows, acts


def _each_row(name: str, leaves: Leaves, options: Options, rows: Tensor, addresses: tuple[int, ...]) -> None:
    """Run an elementwise kernel over all rows."""
    count, samples = rows.shape
    tail = (samples, leaves.neurons, leaves.dendrites, 1.0, ITEM_SIZES[rows.dtype], typed_activation(*options[:2]))
    pieces = ranges(count, workers_for(4 * rows.numel()))  # elementwise, so memory costs more than arithmetic
    threads.run(kernel(name, rows.dtype, options[0]), [(*addresses, a, b, *tail) for a, b in pieces])


def backward(
    gy: Tensor,
    x: Tensor,
    rows: Tensor,
    weight: Tensor,
    acts: Tensor,
    leaves: Leaves,
    options: Options,
    need_gx: bool,
    need_gb: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs (features, samples), weights and biases; empty where not needed."""
    weight, upper = weight.contiguous(), leaves.upper
    grows, gw_upper, gb_upper = run_backward(
        gy,
        rows,
        weight[leaves.synapses :],
        acts,
        upper.tables,
        upper.sizes,
        None,
        *options,
        need_gx=True,
        need_gb=need_gb,
    )
    gb = rows.new_empty(len(rows) if need_gb else 0)
    _each_row(
        "derive_rows", leaves, options, rows, (grows.data_ptr(), rows.data_ptr(), gb.data_ptr() if need_gb else 0)
    )
    g = grows.view(leaves.dendrites, leaves.neurons, rows.shape[1])
    gw = torch.bmm(g, _inputs(x, leaves).transpose(1, 2)).transpose(0, 1)  # (neurons, dendrites, fan_in)
    gw, gb = torch.cat([gw.reshape(-1), gw_upper]), torch.cat([gb, gb_upper])
    if not need_gx:
        return g.new_empty(0), gw, gb
    return torch.bmm(_weights(weight, leaves).transpose(1, 2), g).flatten(0, 1), gw, gb
