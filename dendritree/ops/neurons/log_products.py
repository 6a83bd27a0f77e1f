"""Logarithms of products of sigmoids: the dendrites of the DNM, without underflow and without storing every synapse.

A dendrite multiplies one sigmoid per input, log Z_j = sum over i of log sigmoid(gain_ji x_i - shift_ji). In a direct
implementation autograd saves several tensors of (samples, dendrites, inputs). Here samples are processed a few at a
time and the backward pass recomputes their sigmoids: nothing larger than `CHUNK` numbers, or than the weights
themselves, is ever held, at the cost of one and a half extra forward passes. On the CPU the fused loops of `dense` do
the same in a quarter of the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from . import dense

__all__ = ["CHUNK", "chunks", "join", "log_sigmoid", "log_sigmoid_products", "widen"]

CHUNK = 1 << 18  # numbers at a time, 1 MB of float32, which fits the L2 cache: the best of 2^14 to 2^22


def log_sigmoid_products(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Log of each dendrite's product, shape (samples, dendrites), for x (samples, inputs), gain and shift (dendrites,
    inputs). Half-precision inputs are computed in float32.

    >>> log_sigmoid_products(torch.zeros(1, 1000), torch.ones(2, 1000), torch.zeros(2, 1000)).exp()  # 2^-1000
    tensor([[0., 0.]])
    >>> log_sigmoid_products(torch.zeros(1, 1000), torch.ones(2, 1000), torch.zeros(2, 1000)) / 1000
    tensor([[-0.6931, -0.6931]])
    """
    if dense.needs_operations():
        return _log_sigmoid_products(x, gain, shift)
    y: Tensor = _LogSigmoidProducts.apply(x, gain, shift)  # type: ignore[no-untyped-call]
    return y


def _log_sigmoid_products(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    gain, negated = widen(gain), -widen(shift)
    parts = [
        log_sigmoid(torch.addcmul(negated, widen(some).unsqueeze(1), gain)).sum(-1) for some in chunks(x, gain.numel())
    ]
    return join(parts).to(x.dtype)


class _LogSigmoidProducts(torch.autograd.Function):
    """The backward pass is made of differentiable operations: double backward and `torch.func` work."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        if dense.can_run(x, gain, shift):
            return dense.log_products(x, gain, shift)
        return _log_sigmoid_products(x, gain, shift)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, shift = ctx.saved_tensors
        if not torch.is_grad_enabled() and dense.can_run(gradients[0], x, gain, shift):  # else: double backward
            return dense.log_products_backward(gradients[0], x, gain, shift)
        wide_gain, wide_shift = widen(gain), widen(shift)
        of_x: list[Tensor] = []
        of_gain, of_shift = torch.zeros_like(wide_gain), torch.zeros_like(wide_gain)
        for some, g in zip(chunks(x, gain.numel()), chunks(gradients[0], gain.numel()), strict=True):
            each = widen(some).unsqueeze(1)  # (samples, 1, inputs)
            # d log sigmoid(u) / du = sigmoid(-u)
            slope = torch.sigmoid(torch.addcmul(wide_shift, each, wide_gain, value=-1)) * widen(g).unsqueeze(-1)
            if ctx.needs_input_grad[2]:
                of_shift = of_shift - slope.sum(0)
            if ctx.needs_input_grad[1]:
                of_gain = of_gain + (slope * each).sum(0)
            if ctx.needs_input_grad[0]:
                of_x.append((slope * wide_gain).sum(1))
        return join(of_x).to(x.dtype) if of_x else None, of_gain.to(gain.dtype), of_shift.to(shift.dtype)


def log_sigmoid(u: Tensor) -> Tensor:
    """log(1 / (1 + exp(-u))). Not `F.logsigmoid`: in ONNX it is the logarithm of a rounded sigmoid.

    >>> log_sigmoid(torch.tensor([-100.0, 0.0, 10.0]))
    tensor([-1.0000e+02, -6.9315e-01, -4.5399e-05])
    """
    return -F.softplus(-u, threshold=40)  # beyond 40, exp(-u) is below the rounding error of u


def widen(tensor: Tensor) -> Tensor:
    """Convert half-precision tensors to float32; others are returned unchanged.

    >>> widen(torch.zeros(1, dtype=torch.float16)).dtype, widen(torch.zeros(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def chunks(x: Tensor, weights: int) -> list[Tensor]:
    """Split a batch into slices so small that one number per sample and weight stays within `CHUNK`.

    There is one slice while operations are recorded: the number of slices must not become part of the recording.

    >>> [len(some) for some in chunks(torch.zeros(5, 3), CHUNK // 2)]
    [2, 2, 1]
    """
    return [x] if dense.is_recorded() else list(torch.split(x, max(1, CHUNK // max(1, weights))))


def join(parts: list[Tensor]) -> Tensor:
    """Concatenate what `chunks` has split.

    >>> join([torch.zeros(2, 3), torch.zeros(1, 3)]).shape
    torch.Size([3, 3])
    """
    return parts[0] if len(parts) == 1 else torch.cat(parts)
