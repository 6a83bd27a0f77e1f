"""The fused loops for dendrites that read every input: when they can be used, and how they are called.

Threads divide up the samples in forward passes and the inputs in backward passes: nothing has to be summed across
threads, and results do not depend on their number.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .. import threads
from ..compiled import kernel
from ..fused import HAS_NUMBA, PLAIN_TENSORS, is_transformed
from ..launch import ITEM_SIZES, ranges, workers_for

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

SCRATCH = 256
"""Private memory per thread, in numbers: `2 LANES` and `4 TILE` of the kernels."""

TILE = 64
"""Inputs per tile: threads get whole tiles."""


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
    if not HAS_NUMBA or is_recorded() or is_transformed(*tensors):
        return False
    dtype = tensors[0].dtype
    return (
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


def log_products(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """The sum over inputs of log sigmoid(gain x - shift), shape (samples, dendrites)."""
    y = x.new_empty(len(x), len(gain))
    _by_samples("log_products", (x, gain, shift), (y,), (x.dtype,))
    return y


def log_products_backward(gy: Tensor, x: Tensor, gain: Tensor, shift: Tensor) -> tuple[Tensor, ...]:
    """Gradients of x, gain and shift."""
    return _by_inputs("log_products_backward", (x, gain, shift, gy))


def depths(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Depths of shape (samples, boxes), and the index of the input that has the nearest face."""
    y, nearest = x.new_empty(len(x), len(low)), x.new_empty(len(x), len(low), dtype=torch.int64)
    _by_samples("depths", (x, low, high), (y, nearest), (x.dtype, torch.int32))
    return y, nearest


def smooth_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Smooth depths of shape (samples, boxes), with the least distances and the totals they are computed from."""
    y, least, total = (x.new_empty(len(x), len(low)) for _ in range(3))
    _by_samples("smooth_depths", (x, low, high), (y, least, total), (x.dtype, torch.int32), temperature)
    return y, least, total


def smooth_depths_backward(
    gy: Tensor, x: Tensor, low: Tensor, high: Tensor, least: Tensor, total: Tensor, temperature: float
) -> tuple[Tensor, ...]:
    """Gradients of x, low and high, given the results of `smooth_depths`."""
    each = gy / total  # per exponential, without the rounding of a depth, which would be divided by t
    return _by_inputs("smooth_depths_backward", (x, low, high, least, each), temperature)


Tensors = tuple[Tensor, ...]


def _by_samples(name: str, given: Tensors, results: Tensors, scratch: tuple[torch.dtype, ...], *numbers: float) -> None:
    """Run a kernel that fills tensors, with the samples divided among threads."""
    x, weight = given[:2]
    _run(name, given, results, scratch, (x.shape[1], len(weight)), len(x), 1, *numbers)


def _by_inputs(name: str, given: Tensors, *numbers: float) -> Tensors:
    """The gradients of the first three tensors, from a kernel that adds to them, with the tiles of inputs divided among
    threads."""
    x, weight = given[:2]
    results = tuple(torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in given[:3])
    _run(name, given, results, (x.dtype,), (x.shape[1], len(weight), len(x)), x.shape[1], TILE, *numbers)
    return results


def _run(
    name: str,
    given: Tensors,
    results: Tensors,
    scratch: tuple[torch.dtype, ...],
    sizes: tuple[int, ...],
    total: int,
    tile: int,
    *numbers: float,
) -> None:
    """Process `0 ... total - 1`, in whole tiles per thread if threads are worth waking, each with its own memory."""
    x, weight = given[:2]
    run, item, tensors = kernel(name, x.dtype), ITEM_SIZES[x.dtype], (*(each.contiguous() for each in given), *results)

    def some(first: int, last: int) -> None:
        own = [torch.empty(SCRATCH, dtype=dtype) for dtype in scratch]
        run(*(tensor.data_ptr() for tensor in (*tensors, *own)), *sizes, first, last, item, *numbers, 1.0)

    workers = workers_for(10 * len(x) * weight.numel())  # an exponential costs about 10 multiply-adds
    pieces = ranges(-(-total // tile), workers)
    threads.run(some, [(first * tile, min(last * tile, total)) for first, last in pieces], tensors)
