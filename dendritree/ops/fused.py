"""The fused CPU op: when it can be used, and its registration with torch. No arithmetic happens here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ShapeError
from . import eager, native
from .dropout import synapse_pairs, synapse_scale
from .launch import ITEM_SIZES, Job, Options, kept_bytes_of_a_tile, run_backward, run_forward
from .patches import PatchGrid
from .plan import Plan
from .program import Program, Sizes

__all__ = ["dendritic", "has_hooks", "is_transformed", "kind_of", "obstacle", "traced"]

ACTIVATIONS: dict[Any, str] = {
    nn.LeakyReLU: "LeakyReLU",
    nn.ReLU: "ReLU",
    nn.Tanh: "Tanh",
    nn.Sigmoid: "Sigmoid",
    nn.Identity: "Identity",
    nn.GELU: "GELU",
    nn.SiLU: "SiLU",
    torch.relu: "ReLU",
    torch.tanh: "Tanh",
    torch.sigmoid: "Sigmoid",
}
"""Activations that the kernels support, by module class or function."""

FORWARDS: dict[Any, Any] = {kind: kind.forward for kind in ACTIVATIONS if hasattr(kind, "forward")}
"""The original `forward` methods that the kernels replace: an activation whose class was patched must be called."""

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Where a module stores its hooks: an activation that has any must be called."""

PLAIN_TENSORS = (Tensor, nn.Parameter)


def obstacle(x: Tensor, weight: Tensor, activation: Any, is_compiling: bool = False) -> str | None:
    """Why the fused op cannot do this work, or None if it can."""
    if not x.is_cpu:
        return f"it runs on the CPU, and the input is on {x.device}"
    if weight.dtype not in ITEM_SIZES:
        return f"it computes in float32 and float64, and the weights are {weight.dtype}"
    if kind_of(activation) is None:
        return f"it supports {', '.join(sorted(set(ACTIVATIONS.values())))} with a positive slope, not {activation}"
    if native.missing is not None:
        return native.missing
    if is_compiling:
        return "an export must load without this package" if _is_exporting() else None
    if type(x) not in PLAIN_TENSORS or type(weight) not in PLAIN_TENSORS:
        return f"it takes plain tensors, not {type(x).__name__} and {type(weight).__name__}"
    if torch._C._get_tracing_state() is not None:
        return "an export must load without this package"
    if is_transformed():
        return "torch.func transforms and forward-mode gradients cannot look into it"
    return None


def _is_exporting() -> bool:
    """`torch.compiler.is_exporting()`, but for torch 2.8, where that is true in every graph that it compiles."""
    flag: bool | None = getattr(torch.compiler, "_is_exporting_flag", None)
    return torch.compiler.is_exporting() if flag is None else flag


def is_transformed(*tensors: Tensor) -> bool:
    """Whether a transform is active: `torch.func`, forward-mode gradients, or `is_grads_batched` for these tensors.

    >>> is_transformed(torch.zeros(3))
    False
    """
    return (
        torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
        or any(map(torch._C._functorch.is_legacy_batchedtensor, tensors))  # a generator would cost more than the rest
    )


def has_hooks(module: nn.Module) -> bool:
    """Whether a module has hooks, so that it must be called.

    >>> has_hooks(nn.ReLU())
    False
    """
    attributes = module.__dict__
    for name in HOOKS:  # noqa: SIM110 - a generator would cost more than the rest
        if attributes[name]:
            return True
    return False


def kind_of(activation: Any) -> str | None:
    """The kernels' name of an activation; None if they do not support it or must not replace it."""
    if not isinstance(activation, nn.Module):
        return ACTIVATIONS.get(activation)
    attributes, kind = activation.__dict__, type(activation)  # older versions of torch cannot trace `vars`
    if "forward" in attributes or FORWARDS.get(kind) is not kind.forward:
        return None
    if has_hooks(activation):
        return None
    if isinstance(activation, nn.LeakyReLU) and not activation.negative_slope > 0:
        return None  # the kernels derive the slope from the sign of the output
    if isinstance(activation, nn.GELU) and activation.approximate != "none":
        return None
    return ACTIVATIONS[kind]


def dendritic(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: Plan,
    activation: Callable[[Tensor], Tensor],
    root_activation: bool = True,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    patches: PatchGrid | None = None,
) -> Tensor:
    """The outputs of all neurons, as in `dendritree.ops.dendritic`. `obstacle` must have returned None."""
    job = plan.program, _options(activation, root_activation, dropout), patches, None
    own = 1 if patches is None else 3  # dimensions of a sample
    if torch.is_grad_enabled() and (
        weight.requires_grad or x.requires_grad or (bias is not None and bias.requires_grad)
    ):
        flat = x if x.dim() == own + 1 else x.reshape(-1, *x.shape[-own:])
        # Few arguments, because torch looks at each of them.
        y: Tensor = FusedDendrites.apply(flat, weight, bias, seed, (job, plan, activation))  # type: ignore[no-untyped-call]
        return y if flat is x else y.reshape(*x.shape[:-own], *y.shape[1:])
    # Not a view, so that users may modify it in place.
    counts = () if patches is None else patches.counts(x.shape[-2], x.shape[-1])
    y = torch.empty((*x.shape[:-own], plan.forest.neurons, *counts), dtype=x.dtype)
    run_forward(x.reshape(-1, *x.shape[-own:]), weight, bias, seed, job, y)
    return y


def _options(activation: Any, root_activation: bool, dropout: float) -> Options:
    kind = ACTIVATIONS.get(type(activation)) or ACTIVATIONS[activation]
    return Options(kind, float(getattr(activation, "negative_slope", 0.0)), root_activation, dropout)


class FusedDendrites(torch.autograd.Function):
    """The op for eager mode: a custom op would add 90 microseconds to every call."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        seed: Tensor | None,
        what: tuple[Job, Plan, Callable[[Tensor], Tensor]],
    ) -> Tensor:
        """Compute the outputs and save what the backward pass needs."""
        y, kept, keeps_inputs = run_forward(x, weight, bias, seed, what[0])
        ctx.save_for_backward(x, weight, bias, seed, kept)
        ctx.what = (keeps_inputs, *what)
        return y

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of x, weight and bias."""
        x, weight, bias, seed, kept = ctx.saved_tensors
        (keeps_inputs, job, plan, activation), needed = ctx.what, ctx.needs_input_grad[:3]
        if not torch.is_grad_enabled() and not is_transformed(gy):
            gradients = run_backward(gy, x, weight, bias, kept, keeps_inputs, seed, job, needed[0])
            if gradients is not None:
                gx, gw, gb = gradients
                return gx, gw if needed[1] else None, gb if needed[2] else None, None, None
        _, options, patches, _ = job
        samples = len(x) if patches is None else len(x) * gy.shape[-2:].numel()
        scale = synapse_scale(seed, samples, plan.pairs, options.dropout, x.dtype) if options.dropout else None
        arguments = (plan.layout, activation, options.root_activation, scale)
        return (*_gradients_by_operations(gy, (x, weight, bias), needed, arguments, patches), None, None)


def _gradients_by_operations(
    gy: Tensor,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    needed: Sequence[bool],
    arguments: tuple[Any, ...],
    patches: PatchGrid | None = None,
) -> list[Tensor | None]:
    """The same gradients through the eager backend, with a graph if they will be differentiated again."""
    again, (x, weight, bias) = torch.is_grad_enabled(), tensors
    with torch.autocast("cpu", enabled=False):
        with torch.enable_grad():
            rows = x if patches is None else patches.copied(x)
            y = eager.dendritic(rows, weight, bias, *arguments)
            y = y if patches is None else patches.arranged(y, x)
        wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need and tensor is not None]
        gradients = iter(torch.autograd.grad(y, wanted, gy, create_graph=again))
    return [next(gradients) if need else None for need in needed]


# ------------------------------------------------------------------------------------- the op that compilers can trace


def traced(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: Plan,
    activation: Callable[[Tensor], Tensor],
    root_activation: bool = True,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    patches: PatchGrid | None = None,
) -> Tensor:
    """`dendritic` in a graph that is being compiled."""
    rows = x if patches is None else patches.copied(x)
    flat, program = rows.reshape(-1, rows.shape[-1]).contiguous(), plan.program
    options = _options(activation, root_activation, dropout)
    y: Tensor = _forward_op(flat, weight, bias, program.tables, list(program.sizes), seed, *options)[0]
    y = y.reshape(*rows.shape[:-1], y.shape[-1])
    return y if patches is None else patches.arranged(y, x)


LANES = 64
"""Samples per tile in a compiled graph, fixed so that the saved memory is a simple function of the batch size."""

_SCHEMA_TAIL = (
    "Tensor tables, int[] sizes, Tensor? seed, str activation, float slope, bool root_activation, float dropout"
)


@torch.library.custom_op(
    "dendritree::forward",
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor x, Tensor weight, Tensor? bias, {_SCHEMA_TAIL}) -> (Tensor, Tensor)",
)
def _forward_op(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tables: Tensor,
    sizes: Sequence[int],
    seed: Tensor | None,
    *options: Any,
) -> Any:
    program = _checked_program(x, weight, bias, tables, sizes)
    return run_forward(x, weight, bias, seed, (program, Options(*options), None, LANES))[:2]


def _checked_program(x: Tensor, weight: Tensor, bias: Tensor | None, tables: Tensor, sizes: Sequence[int]) -> Program:
    """Check the sizes: anyone can call a registered op, and the kernels do not check their arguments."""
    program = Program(tables, Sizes(*sizes))
    expected, given = (program.sizes.features, program.sizes.edges), (x.shape[-1], weight.shape[0])
    if x.dim() != 2 or expected != given or (bias is not None and bias.shape[0] != program.sizes.nodes):
        raise ShapeError(f"x and weight must have (inputs, edges) {expected}: got {given}")
    return program


@torch.library.custom_op(
    "dendritree::backward",
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor gy, Tensor x, Tensor weight, Tensor? bias, Tensor kept, {_SCHEMA_TAIL}, bool need_gx) "
    "-> (Tensor, Tensor, Tensor)",
)
def _backward_op(
    gy: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: Tensor,
    tables: Tensor,
    sizes: Sequence[int],
    seed: Tensor | None,
    *rest: Any,
) -> Any:
    *chosen, need_gx = rest
    program, options = _checked_program(x, weight, bias, tables, sizes), Options(*chosen)
    fused = run_backward(gy, x, weight, bias, kept, False, seed, (program, options, None, LANES), need_gx)
    gradients = fused or _gradients_in_a_thread(gy, (x, weight, bias), program, seed, options, need_gx)
    return tuple(gy.new_empty(0) if gradient is None else gradient.clone() for gradient in gradients)  # no views


def _gradients_in_a_thread(
    gy: Tensor,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    program: Program,
    seed: Tensor | None,
    options: Options,
    need_gx: bool,
) -> list[Tensor | None]:
    """Gradients through the eager backend, for numbers that are not finite. This takes another thread because torch
    disables autograd in the thread that runs an op."""
    module = next(kind for kind, name in ACTIVATIONS.items() if name == options.activation)
    activation = module(options.slope) if module is nn.LeakyReLU else module()
    forest, gradients = program.forest(), list[Tensor | None]()

    def work() -> None:
        leaves = [None if tensor is None else tensor.detach().requires_grad_() for tensor in tensors]
        x, weight, bias = leaves
        assert x is not None
        assert weight is not None
        pairs = synapse_pairs(forest, x.device)
        scale = synapse_scale(seed, len(x), pairs, options.dropout, x.dtype) if seed is not None else None
        arguments = (eager.make_layout(forest), activation, options.root_activation, scale)
        needed = (need_gx, True, bias is not None)
        with torch.no_grad():
            gradients.extend(_gradients_by_operations(gy.detach(), (x, weight, bias), needed, arguments))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return gradients


@_forward_op.register_fake
def _(x: Tensor, _weight: Tensor, _bias: Any, _tables: Tensor, sizes: Sequence[int], _seed: Any, *options: Any) -> Any:
    size, activation, dropout = Sizes(*sizes), options[0], options[3]
    kept = kept_bytes_of_a_tile(size, x.dtype, activation, dropout, LANES)
    return x.new_empty(x.shape[0], size.neurons), x.new_empty(-(-x.shape[0] // LANES) * kept, dtype=torch.uint8)


@_backward_op.register_fake
def _(
    _gy: Tensor, x: Tensor, weight: Tensor, _bias: Any, _kept: Any, _tables: Any, sizes: Sequence[int], *rest: Any
) -> Any:
    gx = torch.empty_like(x) if rest[-1] else x.new_empty(0)
    return gx, torch.empty_like(weight), weight.new_empty(Sizes(*sizes).nodes)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, bias, tables, sizes, seed, *options = inputs
    ctx.save_for_backward(x, weight, bias, output[1], tables, seed)
    ctx.sizes, ctx.options = sizes, options


def _differentiate(ctx: Any, gy: Tensor, _g_kept: Tensor | None) -> tuple[Any, ...]:
    x, weight, bias, kept, tables, seed = ctx.saved_tensors
    need_gx, _, need_gb = ctx.needs_input_grad[:3]
    gx, gw, gb = _backward_op(gy, x, weight, bias, kept, tables, ctx.sizes, seed, *ctx.options, need_gx)
    return gx if need_gx else None, gw, gb if need_gb else None, *[None] * 7


_forward_op.register_autograd(_differentiate, setup_context=_save)
