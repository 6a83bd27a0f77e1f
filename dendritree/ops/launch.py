"""Calls of the fused kernels: provides memory and threads. No arithmetic happens here."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from . import native
from .dropout import limit_and_scale
from .native import TreeCall, workers_for
from .patches import PatchGrid
from .program import Program, Sizes
from .sheets import Images, Sheet, block_tiles, choose_sheet, planes_of

__all__ = [
    "ITEM_SIZES",
    "Options",
    "choose_lanes",
    "kept_bytes_of_a_tile",
    "run_backward",
    "run_forward",
]

PIECEWISE, TANH, SIGMOID, GELU, SILU = range(5)
KINDS = {"LeakyReLU": PIECEWISE, "ReLU": PIECEWISE, "Identity": PIECEWISE, "Tanh": TANH, "Sigmoid": SIGMOID}
KINDS |= {"GELU": GELU, "SiLU": SILU}
"""How a node's activation is computed: as `m z` with m = 1 or the slope, or as one of the smooth functions."""

ITEM_SIZES = {torch.float32: 4, torch.float64: 8}
"""The dtypes the kernels compute in, and their bytes per number."""

LENGTHS = (16, 64, 128)
LANES = {torch.float32: LENGTHS, torch.float64: LENGTHS[:2]}
"""Samples per tile. Longer tiles spend less time on reading the tree and more on padding."""

COST_OF_A_TILE = 24
"""Fixed cost of a tile besides its samples, in samples (measured: 16 to 32)."""

INPUT_TILES = 1 << 20
"""Maximum bytes of the inputs of a tile, to stay in the L2 cache: the more inputs, the shorter the tiles."""

KEPT_INPUTS = 1 << 22
"""Bytes of inputs up to which their tiles are shared between threads and saved for the backward pass. Beyond that,
recomputing them costs less than the memory."""

HUGE_PAGES_FROM = 1 << 22
"""Bytes from which NumPy requests huge pages: touching 40 MB for the first time then took 3.5 ms instead of 16."""


class Options(NamedTuple):
    """The options of a call, besides the forest and its tensors."""

    activation: str
    slope: float
    root_activation: bool
    dropout: float


class Recipe(NamedTuple):
    """Everything about a call that does not depend on its tensors: made once per batch size."""

    call: bytes
    """The struct of the call, except for its addresses."""
    is_double: bool
    length: int
    """The index of the tile length in `LENGTHS`."""
    workers: int
    sheet: Sheet | None
    keeps_inputs: bool
    trace_at: int
    silent_at: int
    kept_bytes: int
    """The memory saved for the backward pass, and where traces and bits begin in it; inputs are first, if kept."""
    common_bytes: int
    work_bytes: int
    """Working memory in total: what all threads share, then the part of each thread."""
    groups: int
    parts: int


def choose_lanes(batch: int, sizes: Sizes, dtype: torch.dtype) -> int:
    """Samples per tile, from the sizes alone.

    >>> sizes = Sizes(1024, 10, 330, 10560, 2, 100, 5, 0, 0)
    >>> [choose_lanes(batch, sizes, torch.float32) for batch in (1, 32, 64, 128, 200, 4096)]
    [16, 16, 64, 128, 128, 128]
    """
    lengths = LANES[dtype]
    fitting = [lanes for lanes in lengths if sizes.features * lanes * ITEM_SIZES[dtype] <= INPUT_TILES]
    if sizes.chunks == 1 and batch * sizes.edges >= 2 * native.PARALLEL_FROM:  # threads can only divide up the tiles
        fitting = [lanes for lanes in fitting if 2 * lanes <= batch]
    return min(fitting or lengths[:1], key=lambda lanes: -(-batch // lanes) * (lanes + COST_OF_A_TILE))


def kept_bytes_of_a_tile(sizes: Sizes, dtype: torch.dtype, activation: str, dropout: float, lanes: int) -> int:
    """Bytes that the forward pass saves for the backward pass besides the inputs: traces of nodes, bits of synapses."""
    smooth = KINDS[activation] != 0
    trace = sizes.nodes * lanes * (8 * ITEM_SIZES[dtype] if smooth else 1) // 8
    return trace + (sizes.edges * lanes // 8 if dropout else 0)


@functools.lru_cache(maxsize=1024)
def _recipe(
    batch: int | Images,
    sizes: Sizes,
    dtype: torch.dtype,
    options: Options,
    lanes: int | None,
    workers: int,
    is_backward: bool = False,
    need_gx: bool = False,
) -> Recipe:
    """With `lanes`, tiles have that length and inputs are not saved."""
    item, keeps_inputs, sheet, tiles_of_block = ITEM_SIZES[dtype], False, None, 1
    if isinstance(batch, Images):
        sheet, lanes = choose_sheet(batch, LANES[dtype], COST_OF_A_TILE, item)
        blocks, tiles_of_block = -(-batch.batch // sheet.images), block_tiles(sheet, lanes)
        input_bytes = planes_of(sheet) * sheet.plane * item
    else:
        if lanes is None:
            lanes = choose_lanes(batch, sizes, dtype)
            keeps_inputs = -(-batch // lanes) * lanes * sizes.features * item <= KEPT_INPUTS
        blocks, input_bytes = -(-batch // lanes), sizes.features * lanes * item
    trace_at = blocks * input_bytes if keeps_inputs else 0
    silent_at, kept_bytes = (
        trace_at + blocks * tiles_of_block * kept_bytes_of_a_tile(sizes, dtype, options.activation, dropout, lanes)
        for dropout in (0.0, options.dropout)
    )
    work_bytes, common_bytes = (sizes.slots + sizes.widest) * lanes * item, 0
    if is_backward:
        parts, shares_inputs = min(blocks, 8), keeps_inputs or sheet is not None
        groups = min(sizes.chunks, max(1, (4 if need_gx else 16) // parts)) if shares_inputs else 1
        work_bytes += ((not keeps_inputs) + need_gx) * input_bytes
        common_bytes = 2 * sizes.nodes * item
    else:
        parts, groups = 1, 1 if blocks >= 4 * workers else sizes.chunks
        work_bytes += input_bytes + 4 * lanes
    work_bytes, common_bytes = (-(-size // 64) * 64 for size in (work_bytes, common_bytes))
    limit, scale = limit_and_scale(options.dropout) if options.dropout else (0, 1.0)
    call = TreeCall(
        **{name: count for name, count in sizes._asdict().items() if not name.endswith("_at")},
        batch=batch.batch if isinstance(batch, Images) else batch,
        blocks=blocks,
        block_tiles=tiles_of_block,
        input_numbers=input_bytes // item,
        row_numbers=lanes if sheet is None else 1,
        sheet=sheet or (),
        kind=KINDS[options.activation],
        root_linear=not options.root_activation,
        limit=limit,
        slope=1.0 if options.activation == "Identity" else options.slope,
        scale=scale,
        groups=groups,
        parts=parts,
        work_bytes=work_bytes,
    )
    total, kept = common_bytes + workers * work_bytes, (keeps_inputs, trace_at, silent_at, kept_bytes)
    length = LENGTHS.index(lanes)
    return Recipe(bytes(call), item == 8, length, workers, sheet, *kept, common_bytes, total, groups, parts)


def run_forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    program: Program,
    seed: Tensor | None,
    options: Options,
    lanes: int | None = None,
    y: Tensor | None = None,
    grid: PatchGrid | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (batch, neurons) for inputs (batch, features), and the memory that the backward pass needs.

    Outputs are written to a new tensor, or to `y` if it is given, which may have any shape with that order of numbers
    in memory. With a grid, outputs are (images, neurons, height, width) for contiguous images (images, channels,
    height, width).
    """
    sizes, dtype = program.sizes, weight.dtype
    batch, positions, of_y = _batch(x, grid)
    y = torch.empty((x.shape[0], sizes.neurons, *of_y), dtype=dtype) if y is None else y
    if not x.shape[0]:
        return y, _empty(0)
    recipe = _recipe(batch, sizes, dtype, options, lanes, workers_for(sizes.edges * x.shape[0] * positions))
    kept = _empty(recipe.kept_bytes)
    if (
        lanes is not None
    ):  # an op that compilers can trace: its outputs have no unwritten bits, as of edges from dendrites
        kept.zero_()
    strides = sizes.neurons * positions, positions
    _run(recipe, x, weight, bias, kept, program, seed, y, *strides, grid)
    return y, kept


def _batch(x: Tensor, grid: PatchGrid | None) -> tuple[int | Images, int, tuple[int, ...]]:
    """The batch argument of `_recipe`, the positions per sample or image, and the height and width of outputs."""
    if grid is None:
        return x.shape[0], 1, ()
    images = Images(grid, x.shape[0], x.shape[2], x.shape[3])
    rows, columns = grid.counts(images.height, images.width)
    return images, rows * columns, (rows, columns)


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
    grid: PatchGrid | None = None,
) -> tuple[Tensor | None, Tensor, Tensor] | None:
    """Gradients of inputs (None if not needed), weights and biases; None if numbers are not finite."""
    sizes, dtype = program.sizes, weight.dtype
    if not x.shape[0]:
        return torch.zeros_like(x) if need_gx else None, torch.zeros_like(weight), weight.new_zeros(sizes.nodes)
    batch, positions, _ = _batch(x, grid)
    workers = workers_for(2 * sizes.edges * x.shape[0] * positions)
    recipe = _recipe(batch, sizes, dtype, options, lanes, workers, True, need_gx)
    item, parts = ITEM_SIZES[dtype], recipe.parts
    gx = _empty(recipe.groups * x.numel() * item).view(dtype) if need_gx else None
    gw, gb = torch.empty(parts * sizes.edges, dtype=dtype), torch.empty(parts * sizes.nodes, dtype=dtype)
    strides = gy.stride(0), gy.stride(1)
    if _run(recipe, x, weight, bias, kept, program, seed, gy, *strides, grid, gx, gw, gb):
        return None
    if parts > 1:
        gw, gb = gw[: sizes.edges], gb[: sizes.nodes]
    return None if gx is None else gx[: x.numel()].view(x.shape), gw, gb


_local = threading.local()


def _run(
    recipe: Recipe,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: Tensor,
    program: Program,
    seed: Tensor | None,
    y: Tensor,
    y_sample: int,
    y_feature: int,
    grid: PatchGrid | None = None,
    gx: Tensor | None = None,
    gw: Tensor | None = None,
    gb: Tensor | None = None,
) -> bool:
    """Run a kernel, `y` with these strides; return whether it failed."""
    at = kept.data_ptr()
    # Working memory is kept for the thread's next call; an interrupted call does not return it.
    work: Tensor | None = vars(_local).pop("work", None)
    if work is None or work.shape[0] < recipe.work_bytes:
        work = _empty(recipe.work_bytes)
    call = TreeCall.from_buffer_copy(recipe.call)
    call.places = tables = program.tables.data_ptr()
    call.rows, call.chunk_table = tables + program.sizes.rows_at, tables + program.sizes.chunks_at
    if grid is not None and recipe.sheet is not None:
        shifted = program.shifted(grid, recipe.sheet)
        call.rows = shifted.data_ptr()
    call.x, call.x_sample, call.x_feature = x.data_ptr(), x.stride(0), x.stride(1)
    call.weight, call.y, call.y_sample, call.y_feature = weight.data_ptr(), y.data_ptr(), y_sample, y_feature
    if bias is not None:
        call.bias = bias.data_ptr()
    if seed is not None:
        call.seed = seed.data_ptr()
    if recipe.keeps_inputs:
        call.inputs = at
    call.trace, call.silent = at + recipe.trace_at, at + recipe.silent_at
    call.products = work_at = work.data_ptr()
    call.work = work_at + recipe.common_bytes
    if gw is not None and gb is not None:
        call.gw, call.gb, call.gx_numbers = gw.data_ptr(), gb.data_ptr(), x.numel()
        if gx is not None:
            call.gx = gx.data_ptr()
    assert native.kernels is not None
    run = native.kernels.forward if gw is None else native.kernels.backward
    run(ctypes.addressof(call), recipe.is_double, recipe.length, recipe.workers)
    if recipe.work_bytes < HUGE_PAGES_FROM:
        _local.work = work
    return bool(call.failed)


def _empty(size: int) -> Tensor:
    """Allocate uninitialized bytes, aligned to 64 for vector loads."""
    if size < HUGE_PAGES_FROM:
        return torch.empty(size, dtype=torch.uint8)
    memory = np.empty(size + 64, np.uint8)
    return torch.from_numpy(memory[-memory.ctypes.data % 64 :])[:size]
