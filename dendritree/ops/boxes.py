"""The signed depth of points in boxes: the dendrites of morphological neurons, without keeping the faces.

The depth of x in a box is the distance to its nearest face, min over i of min(x_i - low_i, high_i - x_i): positive
inside, negative outside. As in `products`, samples are taken a few at a time, so that no tensor of (samples, boxes,
inputs) is kept for the backward pass; on the CPU the fused loops of `dense` do it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import dense
from .products import chunks, join

__all__ = ["box_depths"]


def box_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float | None = None) -> Tensor:
    """Depths of shape (samples, boxes), for x (samples, inputs), low and high (boxes, inputs).

    With a temperature t, the smooth minimum -t log(sum exp(-distance / t)) over all faces, which is below the minimum
    by at most t log(2 inputs). Without, the gradient goes to one face, the first of equals.

    >>> low, high = torch.zeros(1, 2), torch.ones(1, 2)
    >>> box_depths(torch.tensor([[0.5, 0.75], [0.5, 3.0]]), low, high).flatten().tolist()
    [0.25, -2.0]
    """
    if temperature is None:
        depth: Tensor = _Depths.apply(x, low, high)[0]  # type: ignore[no-untyped-call]
    else:
        depth = _SmoothDepths.apply(x, low, high, temperature)  # type: ignore[no-untyped-call]
    return depth


class _Depths(torch.autograd.Function):
    """The hard minimum. Only the number of the nearest input is kept, one for each sample and box."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        if dense.can_run(x, low, high):
            return dense.depths(x, low, high)
        found = [torch.minimum(some.unsqueeze(1) - low, high - some.unsqueeze(1)).min(-1) for some in _split(x, low)]
        return join([each.values for each in found]), join([each.indices for each in found])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, low, high, nearest = ctx.saved_tensors
        g, at = gradients[0], x.gather(1, nearest)  # (samples, boxes)
        face = nearest + low.shape[1] * torch.arange(len(low), device=low.device)  # into low and high, flattened
        below = at - low.flatten()[face] <= high.flatten()[face] - at  # the nearest face is the lower one
        to_low, to_high = torch.where(below, -g, 0.0), torch.where(below, 0.0, g)
        of_x = torch.zeros_like(x).scatter_add(1, nearest, -to_low - to_high)
        zeros = torch.zeros_like(low.flatten())
        of_low, of_high = (zeros.scatter_add(0, face.flatten(), to.flatten()) for to in (to_low, to_high))
        return of_x, of_low.reshape(low.shape), of_high.reshape(low.shape)


class _SmoothDepths(torch.autograd.Function):
    """The smooth minimum. Each face's share of the gradient, a softmax, is computed again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> Tensor:
        if dense.can_run(x, low, high):
            return dense.smooth_depths(x, low, high, temperature)
        parts = []
        for some in _split(x, low):
            below, above = (low - some.unsqueeze(1)) / temperature, (some.unsqueeze(1) - high) / temperature
            parts.append(-temperature * torch.logaddexp(below, above).logsumexp(-1))
        return join(parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, low, high, ctx.temperature = inputs
        ctx.save_for_backward(x, low, high, output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, low, high, depth = ctx.saved_tensors
        if not torch.is_grad_enabled() and dense.can_run(gradients[0], x, low, high):  # else: to differentiate again
            return *dense.smooth_depths_backward(gradients[0], x, low, high, depth, ctx.temperature), None
        of_x, of_low, of_high = [], torch.zeros_like(low), torch.zeros_like(high)
        for some, deep, g in zip(_split(x, low), _split(depth, low), _split(gradients[0], low), strict=True):
            point, deep, g = some.unsqueeze(1), deep.unsqueeze(-1), g.unsqueeze(-1)
            below = ((deep - point + low) / ctx.temperature).exp() * g
            above = ((deep - high + point) / ctx.temperature).exp() * g
            of_low, of_high = of_low - below.sum(0), of_high + above.sum(0)
            if ctx.needs_input_grad[0]:
                of_x.append((below - above).sum(1))
        return join(of_x) if of_x else None, of_low, of_high, None


def _split(x: Tensor, low: Tensor) -> list[Tensor]:
    return chunks(x, low.numel())
