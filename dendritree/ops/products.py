"""Logarithms of products of sigmoids: the dendrites of the DNM, without underflow and without keeping the synapses.

A dendrite multiplies one sigmoid per input, log Z_j = sum over i of log sigmoid(gain_ji x_i - shift_ji). Written down
plainly, autograd keeps several tensors of (samples, dendrites, inputs). Here samples are taken a few at a time and the
backward pass computes their sigmoids once more: nothing larger than `CHUNK` numbers, or than the weights themselves, is
ever held, for a forward pass and a half of extra work. On the CPU the fused loops of `dense` do the same
in a fourth of the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from . import dense

__all__ = ["CHUNK", "chunks", "join", "log_sigmoid_products"]

CHUNK = 1 << 18  # numbers at a time, 1 MB of float32: measured from 2^14 to 2^22, the second cache holds it


def log_sigmoid_products(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Log of each dendrite's product, shape (samples, dendrites), for x (samples, inputs), gain and shift (dendrites,
    inputs). Half types are computed in float32.

    >>> log_sigmoid_products(torch.zeros(1, 1000), torch.ones(2, 1000), torch.zeros(2, 1000)).exp()  # 2^-1000
    tensor([[0., 0.]])
    >>> log_sigmoid_products(torch.zeros(1, 1000), torch.ones(2, 1000), torch.zeros(2, 1000)) / 1000
    tensor([[-0.6931, -0.6931]])
    """
    y: Tensor = _LogSigmoidProducts.apply(x, gain, shift)  # type: ignore[no-untyped-call]
    return y


class _LogSigmoidProducts(torch.autograd.Function):
    """The backward pass is made of differentiable operations: double backward and `torch.func` work."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        if dense.can_run(x, gain, shift):
            return dense.log_products(x, gain, shift)
        wide, (gain, negated) = _wide(x.dtype), (_widen(gain), -_widen(shift))
        parts = [
            F.logsigmoid(torch.addcmul(negated, some.to(wide).unsqueeze(1), gain)).sum(-1)
            for some in chunks(x, gain.numel())
        ]
        return join(parts).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, shift = ctx.saved_tensors
        if not torch.is_grad_enabled() and dense.can_run(gradients[0], x, gain, shift):  # else: to differentiate again
            return dense.log_products_backward(gradients[0], x, gain, shift)
        wide, wide_gain, wide_shift = _wide(x.dtype), _widen(gain), _widen(shift)
        of_x: list[Tensor] = []
        of_gain, of_shift = torch.zeros_like(wide_gain), torch.zeros_like(wide_gain)
        for some, g in zip(chunks(x, gain.numel()), chunks(gradients[0], gain.numel()), strict=True):
            each = some.to(wide).unsqueeze(1)  # (samples, 1, inputs)
            # d log sigmoid(u) / du = sigmoid(-u)
            slope = torch.sigmoid(torch.addcmul(wide_shift, each, wide_gain, value=-1)) * g.to(wide).unsqueeze(-1)
            if ctx.needs_input_grad[2]:
                of_shift = of_shift - slope.sum(0)
            if ctx.needs_input_grad[1]:
                of_gain = of_gain + (slope * each).sum(0)
            if ctx.needs_input_grad[0]:
                of_x.append((slope * wide_gain).sum(1))
        return join(of_x).to(x.dtype) if of_x else None, of_gain.to(gain.dtype), of_shift.to(shift.dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(_wide(tensor.dtype))


def chunks(x: Tensor, weights: int) -> list[Tensor]:
    """Slices of a batch, so few samples each that a number per sample and weight stays within `CHUNK`.

    >>> [len(some) for some in chunks(torch.zeros(5, 3), CHUNK // 2)]
    [2, 2, 1]
    """
    return list(torch.split(x, max(1, CHUNK // max(1, weights))))


def join(parts: list[Tensor]) -> Tensor:
    """What `chunks` has taken apart.

    >>> join([torch.zeros(2, 3), torch.zeros(1, 3)]).shape
    torch.Size([3, 3])
    """
    return parts[0] if len(parts) == 1 else torch.cat(parts)
