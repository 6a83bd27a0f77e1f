"""The fused CPU op: when it can be used, and its registration with torch; nothing numeric.

The kernels are features-major: a row holds one input, node or neuron for all samples. Outputs keep that order in
memory, so a stack of layers never transposes between two of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import eager, leaves
from .dropout import synapse_scale
from .launch import ITEM_SIZES, features_major, run_backward, run_forward
from .plan import Plan

__all__ = ["dendritic", "is_transformed", "obstacle"]

ACTIVATIONS: dict[Any, str] = {
    nn.LeakyReLU: "LeakyReLU",
    nn.ReLU: "ReLU",
    nn.Tanh: "Tanh",
    nn.Sigmoid: "Sigmoid",
    nn.Identity: "Identity",
    torch.relu: "ReLU",
    torch.tanh: "Tanh",
    torch.sigmoid: "Sigmoid",
}
"""Activations the kernels know, by module class or function."""

HAS_NUMBA = importlib.util.find_spec("numba") is not None
PLAIN_TENSORS = (Tensor, nn.Parameter)


def obstacle(x: Tensor, weight: Tensor, activation: Any) -> str | None:
    """Why the fused op cannot do this work, or None if it can."""
    if not x.is_cpu:
        return f"it runs on the CPU, the input is on {x.device}"
    if weight.dtype not in ITEM_SIZES:
        return f"it computes in float32 and float64, the weights are {weight.dtype}"
    if _kind(activation) is None:
        return f"it knows {', '.join(sorted(set(ACTIVATIONS.values())))} with a positive slope, not {activation}"
    if not HAS_NUMBA:
        return "it needs numba, which is not installed"
    if torch.compiler.is_compiling():
        return "an export must load without this package" if torch.compiler.is_exporting() else None
    if type(x) not in PLAIN_TENSORS or type(weight) not in PLAIN_TENSORS:
        return f"it takes plain tensors, not {type(x).__name__} and {type(weight).__name__}"
    if torch._C._get_tracing_state() is not None:
        return "an export must load without this package"
    if is_transformed(x, weight):
        return "torch.func transforms and forward-mode gradients cannot look into it"
    return None


def is_transformed(*tensors: Tensor) -> bool:
    """Whether a tensor may stand for more than its numbers: under `torch.func`, in forward mode, in `is_grads_batched`.

    >>> is_transformed(torch.zeros(3))
    False
    """
    return (
        torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
        or any(torch._C._functorch.is_legacy_batchedtensor(tensor) for tensor in tensors)
    )


def _kind(activation: Any) -> str | None:
    """The kernels' name of an activation; None for those they do not know or must not replace."""
    if not isinstance(activation, nn.Module):
        return ACTIVATIONS.get(activation)
    if activation._forward_hooks or activation._forward_pre_hooks:
        return None
    if type(activation) is nn.LeakyReLU and not activation.negative_slope > 0:
        return None  # the derivative is read off the output's sign
    return ACTIVATIONS.get(type(activation))


def dendritic(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: Plan,
    activation: Callable[[Tensor], Tensor],
    root_activation: bool = True,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    """The outputs of all neurons, shape (..., neurons). `obstacle` must have said None."""
    kind, slope = _kind(activation), float(getattr(activation, "negative_slope", 0.0))
    assert kind is not None
    program, options = plan.program, (kind, slope, root_activation, dropout)
    if torch.compiler.is_compiling():
        rows = x.reshape(-1, x.shape[-1]).t().contiguous()
        y = _forward_op(rows, weight, bias, program.tables, program.sizes, seed, *options)[0]
        outputs: Tensor = y.t().reshape(*x.shape[:-1], y.shape[0])
        return outputs
    if torch.is_grad_enabled() and (
        weight.requires_grad or x.requires_grad or (bias is not None and bias.requires_grad)
    ):
        out: Tensor = FusedDendrites.apply(x, weight, bias, seed, plan, options, activation)  # type: ignore[no-untyped-call]
        return out
    return _forward(x, weight, bias, plan, seed, options)[0]


def _empty_outputs(x: Tensor, neurons: int) -> Tensor:
    """Memory for outputs (..., neurons), features-major inside: no view, so that users may change it in place."""
    if x.dim() == 2:
        return torch.empty_strided((x.shape[0], neurons), (1, x.shape[0]), dtype=x.dtype)
    leading = x.shape[:-1]
    strides = torch.empty(leading, device="meta").stride()
    return torch.empty_strided((*leading, neurons), (*strides, leading.numel()), dtype=x.dtype)


class FusedDendrites(torch.autograd.Function):
    """The op for eager mode: a custom op would add 90 microseconds to every call."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        seed: Tensor | None,
        plan: Plan,
        options: leaves.Options,
        activation: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Outputs; activations of all nodes are kept for the way back."""
        y, rows, acts = _forward(x, weight, bias, plan, seed, options)
        ctx.save_for_backward(x, weight, bias, seed, rows, acts)
        ctx.plan, ctx.options, ctx.activation = plan, options, activation
        return y

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of x, weight and bias."""
        if torch.is_grad_enabled() or is_transformed(gy):  # say it in operations torch knows
            return (*_differentiable_gradients(ctx, gy), None, None, None, None)
        x, weight, _, seed, rows, acts = ctx.saved_tensors
        need_gx, need_gw, need_gb = ctx.needs_input_grad[:3]
        options: leaves.Options = ctx.options
        gy = features_major(gy)
        if plan_leaves := _leaves(ctx.plan, options[3]):
            gx, gw, gb = leaves.backward(gy, x, weight, acts, plan_leaves, options, need_gx, need_gb)
        else:
            program = ctx.plan.program
            tables, sizes = program.tables, program.sizes
            gx, gw, gb = run_backward(
                gy, rows, weight, acts, tables, sizes, seed, *options, need_gx=need_gx, need_gb=need_gb
            )
        return (
            gx.t().reshape(x.shape) if need_gx else None,
            gw if need_gw else None,
            gb if need_gb else None,
            None,
            None,
            None,
            None,
        )


def _leaves(plan: Plan, dropout: float) -> leaves.Leaves | None:
    """The leaf level as a matmul, where it is one."""
    return None if dropout else plan.leaves


def _forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: Plan,
    seed: Tensor | None,
    options: leaves.Options,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Outputs (..., neurons), the rows that the kernels read (a matmul reads `x`), and the activations they wrote."""
    y = _empty_outputs(x, plan.forest.neurons)
    if plan_leaves := _leaves(plan, options[3]):
        return y, None, leaves.forward(x, weight, bias, plan_leaves, options, y)
    rows, program = features_major(x), plan.program
    _, acts = run_forward(rows, weight, bias, program.tables, program.sizes, seed, *options, y)
    return y, rows, acts


def _differentiable_gradients(ctx: Any, gy: Tensor) -> list[Tensor | None]:
    """The same gradients through the eager backend, with a graph of their own if somebody will differentiate them."""
    x, weight, bias, seed, _, _ = ctx.saved_tensors
    plan, (_, _, root_activation, dropout) = ctx.plan, ctx.options
    scale = synapse_scale(seed, x.reshape(-1, x.shape[-1]).shape[0], plan.pairs, dropout, x.dtype) if dropout else None
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        y = eager.dendritic(x, weight, bias, plan.layout, ctx.activation, root_activation, scale)
    needed = [tensor for tensor, need in zip((x, weight, bias), ctx.needs_input_grad, strict=False) if need]
    found = iter(torch.autograd.grad(y, needed, gy, create_graph=again))
    return [next(found) if need else None for need in ctx.needs_input_grad[:3]]


# ------------------------------------------------------------------------------------- the op that compilers can trace

_SCHEMA_TAIL = (
    "Tensor tables, int[] sizes, Tensor? seed, str activation, float slope, bool root_activation, float dropout"
)
_forward_op = torch.library.custom_op(
    "dendritree::forward",
    run_forward,
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor x, Tensor weight, Tensor? bias, {_SCHEMA_TAIL}) -> (Tensor, Tensor)",
)
_backward_op = torch.library.custom_op(
    "dendritree::backward",
    lambda *arguments: tuple(tensor.clone() for tensor in run_backward(*arguments)),  # no output may be a view
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor gy, Tensor x, Tensor weight, Tensor acts, {_SCHEMA_TAIL}, bool need_gx, bool need_gb) "
    "-> (Tensor, Tensor, Tensor)",
)


@_forward_op.register_fake
def _(x: Tensor, _weight: Tensor, _bias: Tensor | None, _tables: Tensor, sizes: Sequence[int], *_: Any) -> Any:
    return x.new_empty(sizes[1], x.shape[1]), x.new_empty(sizes[0], x.shape[1])


@_backward_op.register_fake
def _(_gy: Tensor, x: Tensor, weight: Tensor, _acts: Tensor, _tables: Tensor, sizes: Sequence[int], *rest: Any) -> Any:
    need_gx, need_gb = rest[-2:]
    gx = x.new_empty(x.shape[0] if need_gx else 0, x.shape[1])
    return gx, torch.empty_like(weight), weight.new_empty(sizes[0] if need_gb else 0)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _bias, tables, sizes, seed, *options = inputs
    ctx.save_for_backward(x, weight, output[1], tables, seed)
    ctx.sizes, ctx.options = sizes, options


def _differentiate(ctx: Any, gy: Tensor, _g_acts: Tensor | None) -> tuple[Any, ...]:
    x, weight, acts, tables, seed = ctx.saved_tensors
    need_gx, _, need_gb = ctx.needs_input_grad[:3]
    gx, gw, gb = _backward_op(gy.contiguous(), x, weight, acts, tables, ctx.sizes, seed, *ctx.options, need_gx, need_gb)
    return gx if need_gx else None, gw, gb if need_gb else None, *[None] * 7


_forward_op.register_autograd(_differentiate, setup_context=_save)
