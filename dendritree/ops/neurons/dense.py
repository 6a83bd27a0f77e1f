"""The fused loops for dendrites that read every input: when they can be used, and calling them; nothing numeric.

Ways forward are shared between threads by samples, ways back by inputs: nothing has to be summed between threads, and
results do not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable

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
"""Numbers of private memory for each thread, `2 LANES` and `4 TILE` of the kernels."""

TILE = 64
"""Inputs of a tile: threads get whole ones."""


def is_recorded() -> bool:
    """Whether operations are written down to be run later, with batches of other sizes: compilers, exports, traces.

    >>> is_recorded()
    False
    """
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def needs_operations() -> bool:
    """Whether an autograd function of our own is in the way: of a record, and of derivatives in forward mode.

    >>> needs_operations()
    False
    """
    return is_recorded() or torch.autograd.forward_ad._current_level >= 0


def can_run(*tensors: Tensor) -> bool:
    """Whether the loops can take these tensors now. Otherwise PyTorch's own operations must do the work: for other
    devices and types, and whenever somebody wants to see operations (compilers, exports, `torch.func`, dispatch modes).

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
    x, gain, shift = x.contiguous(), gain.contiguous(), shift.contiguous()
    y, run, sizes = x.new_empty(len(x), len(gain)), kernel("log_products", x.dtype), (x.shape[1], len(gain))
    head, item = _addresses(x, gain, shift, y), ITEM_SIZES[x.dtype]

    def some(first: int, last: int) -> None:
        scratch = x.new_empty(SCRATCH)
        run(*head, scratch.data_ptr(), *sizes, first, last, item, 1.0)

    _share(some, len(x), 1, len(x) * gain.numel(), (x, gain, shift, y))
    return y


def log_products_backward(gy: Tensor, x: Tensor, gain: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, gain and shift."""
    gy, x, gain, shift = gy.contiguous(), x.contiguous(), gain.contiguous(), shift.contiguous()
    gradients = torch.zeros_like(x), torch.zeros_like(gain), torch.zeros_like(gain)
    run, sizes = kernel("log_products_backward", x.dtype), (x.shape[1], len(gain), len(x))
    head, item = _addresses(x, gain, shift, gy, *gradients), ITEM_SIZES[x.dtype]

    def some(first: int, last: int) -> None:
        scratch = x.new_empty(SCRATCH)
        run(*head, scratch.data_ptr(), *sizes, first, last, item, 1.0)

    _share(some, x.shape[1], TILE, len(x) * gain.numel(), (gy, x, gain, shift, gradients))
    return gradients


def depths(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Depths of shape (samples, boxes), and the number of the input that has the nearest face."""
    x, low, high = x.contiguous(), low.contiguous(), high.contiguous()
    y, nearest = x.new_empty(len(x), len(low)), torch.empty(len(x), len(low), dtype=torch.int64)
    run, sizes = kernel("depths", x.dtype), (x.shape[1], len(low))
    head, item = _addresses(x, low, high, y, nearest), ITEM_SIZES[x.dtype]

    def some(first: int, last: int) -> None:
        held, found = x.new_empty(SCRATCH), torch.empty(SCRATCH, dtype=torch.int32)
        run(*head, held.data_ptr(), found.data_ptr(), *sizes, first, last, item, 1.0)

    _share(some, len(x), 1, len(x) * low.numel(), (x, low, high, y, nearest))
    return y, nearest


def smooth_depths(x: Tensor, low: Tensor, high: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Smooth depths of shape (samples, boxes), the least distances and the sums of weights they are made of."""
    x, low, high = x.contiguous(), low.contiguous(), high.contiguous()
    y, least, total = (x.new_empty(len(x), len(low)) for _ in range(3))
    run, sizes = kernel("smooth_depths", x.dtype), (x.shape[1], len(low))
    head, item = _addresses(x, low, high, y, least, total), ITEM_SIZES[x.dtype]

    def some(first: int, last: int) -> None:
        held, found = x.new_empty(SCRATCH), torch.empty(SCRATCH, dtype=torch.int32)
        run(*head, held.data_ptr(), found.data_ptr(), *sizes, first, last, item, temperature, 1.0)

    _share(some, len(x), 1, len(x) * low.numel(), (x, low, high, y, least, total))
    return y, least, total


def smooth_depths_backward(
    gy: Tensor, x: Tensor, low: Tensor, high: Tensor, least: Tensor, total: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, low and high, given what `smooth_depths` found."""
    each = (gy / total).contiguous()  # of an exponential; no rounding of a depth comes between, to be divided by t
    x, low, high, least = x.contiguous(), low.contiguous(), high.contiguous(), least.contiguous()
    gradients = torch.zeros_like(x), torch.zeros_like(low), torch.zeros_like(low)
    run, sizes = kernel("smooth_depths_backward", x.dtype), (x.shape[1], len(low), len(x))
    head, item = _addresses(x, low, high, least, each, *gradients), ITEM_SIZES[x.dtype]

    def some(first: int, last: int) -> None:
        scratch = x.new_empty(SCRATCH)
        run(*head, scratch.data_ptr(), *sizes, first, last, item, temperature, 1.0)

    _share(some, x.shape[1], TILE, len(x) * low.numel(), (x, low, high, least, each, gradients))
    return gradients


def _addresses(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _share(some: Callable[[int, int], None], total: int, tile: int, multiply_adds: int, memory: object) -> None:
    """Do `0 ... total - 1`, whole tiles to each thread where threads are worth waking, on some memory."""
    tiles = -(-total // tile)
    pieces = ranges(tiles, workers_for(multiply_adds * 10))  # an exponential costs about that many multiply-adds
    threads.run(some, [(first * tile, min(last * tile, total)) for first, last in pieces], memory)
