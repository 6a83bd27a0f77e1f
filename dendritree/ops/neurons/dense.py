"""The fused loops for dendrites that read every input: when they can be used, and how they are called.

Threads divide up the samples in forward passes and the inputs in backward passes: nothing has to be summed across
threads, and results do not depend on their number.
"""

from __future__ import annotations

import ctypes
import enum

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .. import native
from ..fused import PLAIN_TENSORS, is_transformed
from ..launch import ITEM_SIZES

__all__ = [
    "can_run",
    "depths",
    "is_recorded",
    "log_products",
    "log_products_backward",
    "needs_operations",
    "smooth_depths",
    "smooth_depths_backward",
]

Step = enum.IntEnum("Step", "LOG_PRODUCTS LOG_PRODUCTS_BACKWARD DEPTHS SMOOTH_DEPTHS SMOOTH_DEPTHS_BACKWARD", start=0)


def is_recorded() -> bool:
    """Whether operations are recorded to run later with other batch sizes: by a compiler, an export or a trace.

    >>> is_recorded()
    False
    """
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def needs_operations() -> bool:
    """Whether a custom autograd function cannot be used: while recording, and for forward-mode derivatives.

    >>> needs_operations()
    False
    """
    return is_recorded() or torch.autograd.forward_ad._current_level >= 0


def can_run(*tensors: Tensor) -> bool:
    """Whether the loops can process these tensors now. Otherwise PyTorch's own operations must do the work: for other
    devices and dtypes, and whenever operations must be visible (compilers, exports, `torch.func`, dispatch modes).

    >>> can_run(torch.zeros(2, 3, device="meta")), can_run(torch.zeros(2, 3).half())
    (False, False)
    """
    if is_recorded() or is_transformed(*tensors):
        return False
    dtype = tensors[0].dtype
    can = (
        dtype in ITEM_SIZES
        and all(
            type(tensor) in PLAIN_TENSORS
            and tensor.is_cpu
            and tensor.dtype == dtype
            and tensor.layout == torch.strided
            and tensor.numel() > 0
            and not tensor.is_neg()
            for tensor in tensors
        )
        and _get_current_dispatch_mode() is None
    )
    if can and native.kernels is None:
        native.warn_if_missing()
        return False
    return can


def log_products(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """The sum over inputs of log sigmoid(gain x - shift), shape (samples, dendrites)."""
    y = x.new_empty(len(x), len(gain))
    _run(Step.LOG_PRODUCTS, x, gain, shift, out=y)
    return y


def log_products_backward(gy: Tensor, x: Tensor, gain: Tensor, shift: Tensor) -> tuple[Tensor, ...]:
    """Gradients of x, gain and shift."""
    return _gradients(Step.LOG_PRODUCTS_BACKWARD, x, gain, shift, gy=gy)


def depths(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Depths of shape (samples, boxes), and the index of the input that has the nearest face."""
    y, nearest = x.new_empty(len(x), len(low)), x.new_empty(len(x), len(low), dtype=torch.int64)
    _run(Step.DEPTHS, x, low, high, out=y, nearest=nearest)
    return y, nearest


def smooth_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Smooth depths of shape (samples, boxes), with the least distances and the totals they are computed from."""
    y, least, total = (x.new_empty(len(x), len(low)) for _ in range(3))
    _run(Step.SMOOTH_DEPTHS, x, low, high, temperature, out=y, least_out=least, total_out=total)
    return y, least, total


def smooth_depths_backward(
    gy: Tensor, x: Tensor, low: Tensor, high: Tensor, least: Tensor, total: Tensor, temperature: float
) -> tuple[Tensor, ...]:
    """Gradients of x, low and high, given the results of `smooth_depths`."""
    each = gy / total  # per exponential, without the rounding of a depth, which would be divided by t
    return _gradients(Step.SMOOTH_DEPTHS_BACKWARD, x, low, high, temperature, least=least, gy=each)


def _gradients(
    step: Step, x: Tensor, weight: Tensor, other: Tensor, temperature: float = 1.0, **tensors: Tensor
) -> tuple[Tensor, ...]:
    gradients = tuple(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (x, weight, other))
    named = dict(zip(("of_x", "of_weight", "of_other"), gradients, strict=True))
    _run(step, x, weight, other, temperature, **tensors, **named)
    return gradients


def _run(step: Step, x: Tensor, weight: Tensor, other: Tensor, temperature: float = 1.0, **tensors: Tensor) -> None:
    given = {
        name: tensor.contiguous() for name, tensor in {"x": x, "weight": weight, "other": other, **tensors}.items()
    }
    call = native.DenseCall(
        step=step, inputs=x.shape[1], dendrites=len(weight), samples=len(x), temperature=temperature
    )
    for name, tensor in given.items():
        setattr(call, name, tensor.data_ptr())
    assert native.kernels is not None
    workers = native.workers_for(10 * len(x) * weight.numel())  # an exponential costs about 10 multiply-adds
    native.kernels.dense(ctypes.addressof(call), x.dtype == torch.float64, workers)
