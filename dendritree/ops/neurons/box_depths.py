"""The signed depth of points in boxes: the dendrites of morphological neurons, without storing all face distances.

The depth of x in a box is the distance to its nearest face, min over i of min(x_i - low_i, high_i - x_i): positive
inside, negative outside. As in `log_products`, samples are processed a few at a time, so that no tensor of (samples,
boxes, inputs) is kept for the backward pass; on the CPU, the fused loops of `dense` do this.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import dense
from .log_products import chunks, join, widen

__all__ = ["box_depths", "soft_minimum"]


def box_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float | None = None) -> Tensor:
    """Depths of shape (samples, boxes), for x (samples, inputs), low and high (boxes, inputs).

    With a temperature t, the smooth minimum -t log(sum exp(-distance / t)) over all faces, which is below the minimum
    by at most t log(2 inputs). Without one, the gradient goes to a single face, the first of equals.

    >>> low, high = torch.zeros(1, 2), torch.ones(1, 2)
    >>> box_depths(torch.tensor([[0.5, 0.75], [0.5, 3.0]]), low, high).flatten().tolist()
    [0.25, -2.0]
    """
    if temperature is None:
        return _depths(x, low, high)
    if dense.needs_operations():
        return _smooth_depths(x, low, high, temperature)[0]
    depth: Tensor = _SmoothDepths.apply(x, low, high, temperature)[0]  # type: ignore[no-untyped-call]
    return depth


# ------------------------------------------------------------------------------------------------ the hard minimum


def _depths(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Find the nearest input without derivatives; then only its two faces need to be differentiated."""
    if not (torch.is_grad_enabled() or dense.needs_operations()):
        return _nearest(x, low, high)[0]
    nearest = _nearest(x.detach(), low.detach(), high.detach())[1]
    point, of_box = x.gather(1, nearest), nearest.t()
    below, above = point - low.gather(1, of_box).t(), high.gather(1, of_box).t() - point
    return torch.where((below <= above) | below.isnan(), below, above)  # `minimum` would split gradients between equals


def _nearest(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Depths, and the index of the input that has the nearest face."""
    if dense.can_run(x, low, high):
        return dense.depths(x, low, high)
    points = (some.unsqueeze(1) for some in chunks(x, low.numel()))
    least = [torch.minimum(point - low, high - point).min(-1) for point in points]
    return join([each.values for each in least]), join([each.indices for each in least])


# ---------------------------------------------------------------------------------------------- the smooth minimum


def soft_minimum(distances: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """The smooth minimum over the last dimension, least - t log(total); the least distance; and total, the sum of
    exp((least - distance) / t).

    Differences are taken before the division by t, so that the rounding error of a large distance is not amplified.

    >>> soft_minimum(torch.tensor([1e4, 1e4 + 1]), 0.01)
    (tensor(10000.), tensor(10000.), tensor(1.))
    """
    largest = torch.finfo(distances.dtype).max  # where the least is infinite, differences from it would be NaN
    least = distances.detach().amin(-1).clamp(-largest, largest)
    total = ((least.unsqueeze(-1) - distances) / temperature).exp().sum(-1)
    return least - temperature * total.log(), least, total


def _smooth_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Depths in the dtype of x, and the least distances and totals in at least float32."""
    wide_low, wide_high = widen(low), widen(high)
    parts = [soft_minimum(_faces(some, wide_low, wide_high), temperature) for some in chunks(x, 2 * low.numel())]
    depth, least, total = (join(list(each)) for each in zip(*parts, strict=True))
    return depth.to(x.dtype), least, total


def _faces(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Distances to all faces, shape (samples, boxes, 2 inputs): the lower faces first."""
    point = widen(x).unsqueeze(1)
    return torch.cat([point - low, high - point], -1)


class _SmoothDepths(torch.autograd.Function):
    """Each face's share of the gradient, a softmax, is recomputed in the backward pass, with PyTorch operations if it
    will be differentiated again. The least distances and the totals are not results; they are saved for this."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
        if dense.can_run(x, low, high):
            return dense.smooth_depths(x, low, high, temperature)
        return _smooth_depths(x, low, high, temperature)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        x, low, high, ctx.temperature = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, low, high, *output[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, low, high, least, total = ctx.saved_tensors
        if not torch.is_grad_enabled() and dense.can_run(gradients[0], x, low, high):  # else: double backward
            return *dense.smooth_depths_backward(gradients[0], x, low, high, least, total, ctx.temperature), None
        wide_low, wide_high = widen(low), widen(high)
        of_x, of_low, of_high = [], torch.zeros_like(wide_low), torch.zeros_like(wide_high)
        samples = (chunks(each, 2 * low.numel()) for each in (x, least, gradients[0]))
        for some, nearest, g in zip(*samples, strict=True):
            weights = ((nearest.unsqueeze(-1) - _faces(some, wide_low, wide_high)) / ctx.temperature).exp()
            shares = weights / weights.sum(-1, keepdim=True) * widen(g).unsqueeze(-1)
            below, above = shares[..., : low.shape[1]], shares[..., low.shape[1] :]
            of_low, of_high = of_low - below.sum(0), of_high + above.sum(0)
            if ctx.needs_input_grad[0]:
                of_x.append((below - above).sum(1))
        return join(of_x).to(x.dtype) if of_x else None, of_low.to(low.dtype), of_high.to(high.dtype), None
