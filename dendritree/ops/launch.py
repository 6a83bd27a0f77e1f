"""Calling the fused kernels: giving them memory and threads; nothing numeric."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from . import threads
from .compiled import entry
from .dropout import limit_and_scale
from .header import KINDS, Call, Sizes, pack
from .program import Program

__all__ = [
    "ITEM_SIZES",
    "Options",
    "choose_lanes",
    "kept_bytes_of_a_tile",
    "ranges",
    "run_backward",
    "run_forward",
    "workers_for",
]

ITEM_SIZES = {torch.float32: 4, torch.float64: 8}
"""The number types the kernels compute in, and their bytes."""

PARALLEL_FROM = 200_000
"""Multiply-adds below which one thread does it all."""

LANES = {torch.float32: (16, 64, 128), torch.float64: (16, 64)}
"""Samples of a tile. Longer ones spend less on reading the tree and more on samples that are not there."""

COST_OF_A_TILE = 24
"""What a tile costs beside its samples, in samples (measured: 16 to 32)."""

INPUT_TILES = 1 << 20
"""Bytes that the inputs of a tile of samples may have, to stay in the second cache: more inputs, shorter tiles."""

KEPT_INPUTS = 1 << 22
"""Bytes of inputs up to which their tiles are shared between threads and kept for the backward pass. Beyond, making
them again costs less than the memory."""

HUGE_PAGES_FROM = 1 << 22
"""Bytes from which NumPy asks the system for huge pages: touching 40 MB for the first time took 3.5 ms, not 16."""


class Options(NamedTuple):
    """What a call does besides the forest and its tensors."""

    activation: str
    slope: float
    root_activation: bool
    dropout: float


class Layout(NamedTuple):
    """How a batch is cut into tiles, and where things lie in the memory that is kept for the backward pass."""

    lanes: int
    tiles: int
    keeps_inputs: bool
    trace_at: int
    silent_at: int
    kept_bytes: int


def choose_lanes(batch: int, sizes: Sizes, dtype: torch.dtype) -> int:
    """Samples of a tile, by the sizes alone.

    >>> sizes = Sizes(1024, 10, 330, 10560, 2, 100, 5, 0, 0, 0)
    >>> [choose_lanes(batch, sizes, torch.float32) for batch in (1, 32, 64, 128, 200, 4096)]
    [16, 16, 64, 128, 128, 128]
    """
    lengths = LANES[dtype]
    fitting = [lanes for lanes in lengths if sizes.features * lanes * ITEM_SIZES[dtype] <= INPUT_TILES]
    if sizes.chunks == 1 and batch * sizes.edges >= 2 * PARALLEL_FROM:  # threads can share nothing but tiles
        fitting = [lanes for lanes in fitting if 2 * lanes <= batch]
    return min(fitting or lengths[:1], key=lambda lanes: -(-batch // lanes) * (lanes + COST_OF_A_TILE))


def kept_bytes_of_a_tile(sizes: Sizes, dtype: torch.dtype, activation: str, dropout: float, lanes: int) -> int:
    """What the forward pass keeps for the backward pass, beside the inputs: traces of nodes, bits of synapses."""
    smooth = KINDS[activation] != 0
    trace = sizes.nodes * lanes * (8 * ITEM_SIZES[dtype] if smooth else 1) // 8
    return trace + (sizes.edges * lanes // 8 if dropout else 0)


@functools.lru_cache(maxsize=1024)
def _layout(batch: int, sizes: Sizes, dtype: torch.dtype, options: Options, lanes: int | None) -> Layout:
    """With `lanes`, tiles of that length, and inputs are not kept."""
    item, keeps_inputs = ITEM_SIZES[dtype], False
    if lanes is None:
        lanes = choose_lanes(batch, sizes, dtype)
        keeps_inputs = -(-batch // lanes) * lanes * sizes.features * item <= KEPT_INPUTS
    tiles = -(-batch // lanes)
    activation, _, _, dropout = options
    trace_at = tiles * sizes.features * lanes * item if keeps_inputs else 0
    silent_at = trace_at + tiles * kept_bytes_of_a_tile(sizes, dtype, activation, 0.0, lanes)
    kept_bytes = trace_at + tiles * kept_bytes_of_a_tile(sizes, dtype, activation, dropout, lanes)
    return Layout(lanes, tiles, keeps_inputs, trace_at, silent_at, kept_bytes)


def run_forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    program: Program,
    seed: Tensor | None,
    options: Options,
    lanes: int | None = None,
    y: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (batch, neurons) of inputs (batch, features), and the memory that the backward pass wants to see again.

    Outputs are new, or `y` if it is given: any shape, with that order of numbers in memory.
    """
    sizes, batch, dtype = program.sizes, x.shape[0], weight.dtype
    layout = _layout(batch, sizes, dtype, options, lanes)
    y = torch.empty((batch, sizes.neurons), dtype=dtype) if y is None else y
    kept = _empty(layout.kept_bytes)
    if not batch:
        return y, kept
    item, lanes = ITEM_SIZES[dtype], layout.lanes
    workers = workers_for(sizes.edges * batch)
    rows = sizes.slots + sizes.widest + (0 if layout.keeps_inputs else sizes.features)
    work, work_bytes = _work(rows * lanes * item + 4 * lanes, workers)
    kept_at = kept.data_ptr()
    splits = 4 if layout.tiles < 4 and sizes.features >= 64 else 1
    _run(
        "forward",
        dtype,
        lanes,
        workers,
        _common(x, weight, bias, program, seed, options, layout, kept_at)._replace(
            y=y.data_ptr(),
            y_sample=sizes.neurons * item,
            y_feature=item,
            work=work.ctypes.data,
            work_bytes=work_bytes,
            splits=splits,
            groups=sizes.chunks if layout.keeps_inputs else 1,
        ),
        (x, weight, bias, program, seed, y, kept, work),
    )
    return y, kept


def run_backward(
    gy: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: Tensor,
    program: Program,
    seed: Tensor | None,
    options: Options,
    need_gx: bool,
    lanes: int | None = None,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Gradients of inputs (empty if not needed), weights and biases; None where numbers are not finite."""
    sizes, (batch, features), dtype = program.sizes, x.shape, weight.dtype
    layout = _layout(batch, sizes, dtype, options, lanes)
    if not batch:
        return torch.zeros_like(x), torch.zeros_like(weight), weight.new_zeros(sizes.nodes)
    item, lanes = ITEM_SIZES[dtype], layout.lanes
    parts = min(layout.tiles, 8)
    groups = min(sizes.chunks, max(1, (4 if need_gx else 16) // parts)) if layout.keeps_inputs else 1
    gx = _empty(groups * batch * features * item if need_gx else 0).view(dtype)
    gw, gb = torch.empty((parts, sizes.edges), dtype=dtype), torch.empty((parts, sizes.nodes), dtype=dtype)
    workers = workers_for(2 * sizes.edges * batch)
    rows = sizes.slots + sizes.widest + (features if need_gx else 0) + (0 if layout.keeps_inputs else features)
    numbers = (2 * sizes.nodes * item + 63) // 64 * 64
    work, work_bytes = _work(rows * lanes * item, workers, numbers)
    call = _common(x, weight, bias, program, seed, options, layout, kept.data_ptr())._replace(
        y=gy.data_ptr(),
        y_sample=gy.stride(0) * item,
        y_feature=gy.stride(1) * item,
        work=work.ctypes.data + numbers,
        work_bytes=work_bytes,
        groups=groups,
        parts=parts,
        gx=gx.data_ptr() if need_gx else 0,
        gw=gw.data_ptr(),
        gb=gb.data_ptr(),
        products=work.ctypes.data,
    )
    memory = (gy, x, weight, bias, kept, program, seed, gx, gw, gb, work)
    if _run("backward", dtype, lanes, workers, call, memory):
        return None
    return gx[: batch * features].view(batch, features) if need_gx else gx, gw[0], gb[0]


def _common(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    program: Program,
    seed: Tensor | None,
    options: Options,
    layout: Layout,
    kept_at: int,
) -> Call:
    """The fields that both passes share."""
    activation, slope, root_activation, dropout = options
    limit, scale = limit_and_scale(dropout) if dropout else (0, 1.0)
    item = ITEM_SIZES[weight.dtype]
    return Call(
        tables=program.tables.data_ptr(),
        sizes=program.packed_sizes.ctypes.data,
        batch=x.shape[0],
        kind=KINDS[activation],
        root_linear=not root_activation,
        slope=1.0 if activation == "Identity" else slope,
        limit=limit,
        scale=scale,
        seed=0 if seed is None else seed.data_ptr(),
        x=x.data_ptr(),
        x_sample=x.stride(0) * item,
        x_feature=x.stride(1) * item,
        weight=weight.data_ptr(),
        bias=0 if bias is None else bias.data_ptr(),
        inputs=kept_at if layout.keeps_inputs else 0,
        trace=kept_at + layout.trace_at,
        silent=kept_at + layout.silent_at,
    )


_FAILED = 8 * Call._fields.index("failed")


def _run(name: str, dtype: torch.dtype, lanes: int, workers: int, call: Call, memory: tuple[Any, ...]) -> bool:
    """Run a kernel on memory that must outlive it, working memory last; whether it failed."""
    compiled = entry(name, dtype, lanes)
    header = ctypes.create_string_buffer(pack(*call))
    threads.run_together(compiled.call, compiled.address, ctypes.addressof(header), workers, (header, memory))
    if memory[-1].nbytes < HUGE_PAGES_FROM:
        _local.work = memory[-1]
    return header.raw[_FAILED] != 0


_local = threading.local()


def _work(bytes_each: int, workers: int, bytes_more: int = 0) -> tuple[np.ndarray, int]:
    """Working memory for all threads, and the bytes of each. What a call used is held for the next one of its thread,
    if it is small; a call that was interrupted gives nothing back."""
    bytes_each = (bytes_each + 63) // 64 * 64
    size = bytes_each * workers + bytes_more
    work: np.ndarray | None = vars(_local).pop("work", None)
    if work is None or work.nbytes < size:
        work = np.empty(size + 64, np.uint8)
        work = work[-work.ctypes.data % 64 :]  # vectors like to begin at multiples of their size
    return work, bytes_each


def _empty(size: int) -> Tensor:
    """So many bytes, not initialized."""
    return (
        torch.empty(size, dtype=torch.uint8) if size < HUGE_PAGES_FROM else torch.from_numpy(np.empty(size, np.uint8))
    )


def ranges(total: int, pieces: int) -> list[tuple[int, int]]:
    """Cut `0 ... total - 1` into at most so many runs."""
    pieces = min(pieces, total)
    return [(i * total // pieces, (i + 1) * total // pieces) for i in range(pieces)]


def workers_for(multiply_adds: int) -> int:
    """Threads worth waking."""
    return torch.get_num_threads() if multiply_adds >= PARALLEL_FROM else 1
