"""The leaf level of neurons that read the same inputs is a batched matmul: here it is done as one.

`n` dendrites a neuron with `k` synapses each, shared by all neurons: `n` products of (neurons, k) and (k, samples),
written where the kernels expect the leaf dendrites. They finish them, and do the levels above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..tree import Forest
from .launch import empty_rows, run_forward, run_nodes_backward
from .program import Program, make_program

__all__ = ["Leaves", "Options", "backward", "forward", "make_leaves"]

LEAST_FAN_IN = 8
"""Synapses of a dendrite from which the matmul is faster than the kernel's own loop (measured: not at 4, at 16)."""

Options = tuple[str, float, bool, float]
"""Activation, its slope, whether the roots have one, dropout: as the kernels take them."""


@dataclass(frozen=True)
class Leaves:
    """A forest whose leaf level is a batched matmul."""

    neurons: int
    dendrites: int
    """Leaf dendrites of each neuron."""
    fan_in: int
    program: Program

    @property
    def synapses(self) -> int:
        """Of all neurons."""
        return self.neurons * self.dendrites * self.fan_in

    @property
    def rows(self) -> int:
        """Leaf dendrites of all neurons."""
        return self.neurons * self.dendrites


def make_leaves(forest: Forest) -> Leaves | None:
    """Lay out a forest for a matmul, if its leaf level is shared by all neurons, in input order, and wide enough.

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
    above = forest.source[synapses:] - forest.in_features < level.stop  # edges that read a leaf dendrite
    second_level = np.arange(synapses, forest.edges) < forest.offsets[forest.levels[1].stop]
    neuron = forest.neuron_of_node[level]
    if not np.array_equal(above, second_level) or not np.array_equal(neuron, np.repeat(np.arange(neurons), count)):
        return None
    return Leaves(neurons, count, fan_in, make_program(forest, matmul_leaves=True))


def _inputs(x: Tensor, leaves: Leaves) -> Tensor:
    """The inputs of each leaf dendrite as a matrix: (dendrites, fan_in, samples), without a copy where possible."""
    flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    sample, feature = flat.stride()
    return flat.as_strided((leaves.dendrites, leaves.fan_in, len(flat)), (leaves.fan_in * feature, feature, sample))


def _weights(weight: Tensor, leaves: Leaves) -> Tensor:
    """The weights of the leaf level: (dendrites, neurons, fan_in)."""
    neurons, dendrites, fan_in = leaves.neurons, leaves.dendrites, leaves.fan_in
    return weight.as_strided((dendrites, neurons, fan_in), (fan_in, dendrites * fan_in, 1))


def _leaf_rows(rows: Tensor, leaves: Leaves) -> Tensor:
    """The last rows of a buffer, those of the leaf dendrites: (dendrites, neurons, samples)."""
    samples = rows.shape[1]
    shape, strides = (leaves.dendrites, leaves.neurons, samples), (leaves.neurons * samples, samples, 1)
    return rows.as_strided(shape, strides, (rows.shape[0] - leaves.rows) * samples)


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, leaves: Leaves, options: Options, y: Tensor) -> Tensor:
    """Activations of all nodes; the outputs go into `y`."""
    weight, inputs, program = weight.contiguous(), _inputs(x, leaves), leaves.program
    acts = empty_rows(program.sizes[0], inputs.shape[2], weight.dtype)
    torch.bmm(_weights(weight, leaves), inputs, out=_leaf_rows(acts, leaves))
    run_forward(acts, weight, bias, program.tables, program.sizes, None, *options, y, acts)
    return acts


def backward(
    gy: Tensor, x: Tensor, weight: Tensor, acts: Tensor, leaves: Leaves, options: Options, need_gx: bool, need_gb: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs (features, samples), weights and biases; empty where not needed."""
    weight, program = weight.contiguous(), leaves.program
    tables, sizes = program.tables, program.sizes
    grads, gw, gb = run_nodes_backward(
        gy, acts, weight, acts, tables, sizes, None, *options, keep=True, need_gb=need_gb
    )
    g = _leaf_rows(grads, leaves)
    _weights(gw, leaves).copy_(torch.bmm(g, _inputs(x, leaves).transpose(1, 2)))
    if not need_gx:
        return g.new_empty(0), gw, gb
    return torch.bmm(_weights(weight, leaves).transpose(1, 2), g).flatten(0, 1), gw, gb
