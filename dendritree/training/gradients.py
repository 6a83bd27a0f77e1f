"""Losses with their gradients, bit-identical to those of autograd."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LossBack = Callable[[Tensor], Tensor]
"""Takes the gradients of the losses of all examples; returns that of the outputs."""
LossAndBack = Callable[[Tensor, Tensor], tuple[Tensor, LossBack]]
"""Takes outputs (examples, predictions, features) and targets; returns a loss per example and the backward function."""

IGNORED = -100
"""A class that torch's cross-entropy ignores; it never occurs in targets here."""


def _mean_each(values: Tensor) -> Tensor:
    return values.reshape(values.shape[0], -1).mean(1)


def _spread(gradient: Tensor, like: Tensor) -> Tensor:
    """The backward pass of `_mean_each`, to values of shape (examples, ...)."""
    each = gradient / (like.numel() // gradient.shape[0])
    return each.view(-1, *[1] * (like.dim() - 1))


def _cross_entropy(out: Tensor, y: Tensor) -> tuple[Tensor, LossBack]:
    target = y.flatten().long()
    logs = torch._log_softmax(out.flatten(0, 1), 1, False)
    each, total = torch.ops.aten.nll_loss_forward.default(logs, target, None, 0, IGNORED)
    each = each.view(y.shape)

    def back(gradient: Tensor) -> Tensor:
        spread = _spread(gradient, each).expand(each.shape).reshape(-1)
        found = torch.ops.aten.nll_loss_backward.default(spread, logs, target, None, 0, IGNORED, total)
        return torch._log_softmax_backward_data(found, logs, 1, logs.dtype).view(out.shape)

    return _mean_each(each), back


def _binary_logits(out: Tensor, y: Tensor) -> tuple[Tensor, LossBack]:
    target = y.to(out.dtype).reshape(out.shape)
    each = torch.binary_cross_entropy_with_logits(out, target, None, None, 0)
    return _mean_each(each), lambda gradient: torch.sigmoid(out).sub_(target).mul_(_spread(gradient, out))


def _squared_error(out: Tensor, y: Tensor) -> tuple[Tensor, LossBack]:
    error = out - y.reshape(out.shape)
    return _mean_each(error.square()), lambda gradient: _spread(gradient, out) * (2 * error)


GRADIENTS: dict[str, LossAndBack] = {
    "cross-entropy": _cross_entropy,
    "binary-logits": _binary_logits,
    "squared-error": _squared_error,
}
"""Losses by their names in `LOSSES`; all others are left to autograd."""
