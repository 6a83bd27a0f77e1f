"""Gradients of a committee without autograd: the same operations in the same order, so results are bit-identical.

For a batch of a table, autograd itself takes several times as long as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from .examples import Examples
from ..layers import DendriticLayer
from ..layers.linear import BatchNorm, Linear
from ..ops import fused
from ..ops.launch import Options
from .committee import Committee
from .gradients import GRADIENTS, LossAndBack

Back = Callable[[Tensor], Tensor | None]
"""Takes the gradient of an output, sets those of the parameters, and returns that of the input."""
Run = Callable[[Tensor], tuple[Tensor, Back]]
"""Takes an input; returns the output and the backward function."""


class Direct(NamedTuple):
    """A committee whose gradients are computed directly, from `direct`. Valid until the committee is changed."""

    committee: Committee
    hidden: tuple[Run, ...]
    loss: LossAndBack

    def step(self, batch: Examples, mean_weight: Tensor | float) -> tuple[Tensor, Tensor]:
        """Set the parameters' gradients of the mean loss of a batch; return outputs and losses per example.

        Must be called under `torch.no_grad`.
        """
        committee, readout = self.committee, cast(nn.Linear, self.committee.network.readout)
        bias, own, backs = committee.bias, committee.own[:, None], list[Back]()
        (members, outputs), rows = bias.shape, batch.x.shape[0]
        hidden = batch.x[:, :-1] if committee.held_out else batch.x
        for run in self.hidden:
            hidden, back = run(hidden)
            backs.append(back)
        weight = (readout.weight * own).flatten(0, 1)  # (members * out, hidden)
        answers = torch.mm(hidden, weight.t()).view(rows, members, outputs) + bias
        asked = committee.asked(batch.x, outputs)
        out = answers if asked is None else answers.gather(1, asked)
        per_example, loss_back = self.loss(out, batch.y)
        gradient = torch.ones_like(per_example) / rows
        if batch.weight is not None:
            gradient = gradient / mean_weight * batch.weight
        gradient = loss_back(gradient)
        if asked is not None:
            gradient = torch.zeros_like(answers).scatter_(1, asked, gradient)
        bias.grad = gradient.sum(0)
        gradient = gradient.view(rows, -1)
        readout.weight.grad = (torch.mm(gradient.t(), hidden).view(members, outputs, -1) * own).sum(0)
        upstream: Tensor | None = torch.mm(gradient, weight)
        for back in reversed(backs):
            assert upstream is not None
            upstream = back(upstream)
        return out, per_example


def direct(model: nn.Module, examples: Examples, loss: str) -> Direct | None:
    """How to compute the gradients of a model directly; None if only autograd can, or if autograd is being observed.

    Called again for each epoch: a callback may change the model.
    """
    if type(model) is not Committee or loss not in GRADIENTS or _is_watched(model):
        return None
    network, x, y = model.network, examples.x, examples.y
    (members, outputs), first = model.bias.shape, network.hidden[0]
    features, places = getattr(first, "in_features", -1) + model.held_out, (members - model.held_out)
    if loss == "cross-entropy":
        fits = y.shape == (len(x), places) and bool(y.max() < outputs)
    else:
        fits = y.numel() == len(x) * places * outputs
    plain = type(x) is Tensor and x.is_cpu and not x.requires_grad and x.dtype == model.bias.dtype
    if not (fits and plain) or x.dim() != 2 or x.shape[1] != features or type(network.readout) is not Linear:
        return None
    runs = [_run_of(part, is_first=part is first) for part in network.hidden]
    known = tuple(run for run in runs if run is not None)
    return Direct(model, known, GRADIENTS[loss]) if len(known) == len(runs) else None


def _is_watched(model: nn.Module) -> bool:
    """Whether hooks, autocast or anomaly detection depend on autograd."""
    hooked = any(getattr(nn.modules.module, f"_global{hooks}") for hooks in fused.HOOKS)
    if hooked or torch.is_anomaly_enabled() or torch.is_autocast_enabled("cpu"):
        return True
    for module in model.modules():
        own = vars(module)
        if "forward" in own or any(own[hooks] for hooks in fused.HOOKS):
            return True
    return any(
        type(p) is not nn.Parameter or not p.requires_grad or p._backward_hooks or p._post_accumulate_grad_hooks
        for p in model.parameters()
    )


def _run_of(part: nn.Module, *, is_first: bool) -> Run | None:
    if type(part) is DendriticLayer and is_first:
        return _dendrites(part)
    if type(part) is BatchNorm and not is_first and part.affine and part.running_mean is not None:
        return None if part.momentum is None else _batch_norm(part)
    return None


class _Saved:
    """A stand-in for the context object of autograd functions."""

    needs_input_grad = False, True, True
    saved_tensors: tuple[Tensor | None, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[name] = value


def _dendrites(layer: DendriticLayer) -> Run | None:
    """A first layer of trees: the gradient of its inputs is not needed."""
    weight, bias, plan, activation = layer.weight, layer.bias, layer._plan, layer.activation
    kind, slope = fused.kind_of(activation), float(getattr(activation, "negative_slope", 0.0))
    able = layer.backend in ("auto", "fused") and fused.obstacle(weight.data, weight.data, activation) is None
    if not able or kind is None or bias is None or plan.ties is not None or layer.dropout:
        return None
    options = Options(kind, slope, layer.root_activation, 0.0)

    def run(x: Tensor) -> tuple[Tensor, Back]:
        saved = _Saved()
        y = fused.FusedDendrites.forward(saved, x, weight, bias, None, plan, options, activation, None)

        def back(gy: Tensor) -> None:
            _, weight.grad, bias.grad, *_ = fused.FusedDendrites.backward(saved, gy)

        return y, back

    return run


def _batch_norm(norm: BatchNorm) -> Run:
    weight, bias, mean, variance = norm.weight, norm.bias, norm.running_mean, norm.running_var
    tracked, momentum, eps = norm.num_batches_tracked, norm.momentum, norm.eps
    assert tracked is not None
    assert momentum is not None
    backward = torch.ops.aten.native_batch_norm_backward.default

    def run(x: Tensor) -> tuple[Tensor, Back]:
        tracked.add_(1)
        y, *kept = torch.native_batch_norm(x, weight, bias, mean, variance, True, momentum, eps)

        def back(gy: Tensor) -> Tensor:
            gx: Tensor
            gx, weight.grad, bias.grad = backward(gy, x, weight, mean, variance, *kept, True, eps, [True] * 3)
            return gx

        return y, back

    return run
