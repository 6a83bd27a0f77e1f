"""Calls of the fused kernels, with their memory and threads. No arithmetic happens here."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import NamedTuple, TypeAlias

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
    "Job",
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
"""Bytes of inputs up to which their tiles are saved for the backward pass, if one thread does all the work. Beyond
that, recomputing them costs less than the memory. With more threads, each makes its own in both passes: writing what
another core had read in the step before took four times as long (60 microseconds instead of 15)."""

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
    keeps_inputs: bool,
    is_backward: bool = False,
    need_gx: bool = False,
) -> Recipe:
    """The recipe of a call; with `lanes`, tiles have that length."""
    item, sheet, tiles_of_block = ITEM_SIZES[dtype], None, 1
    if isinstance(batch, Images):
        sheet, lanes = choose_sheet(batch, LANES[dtype], COST_OF_A_TILE, item)
        blocks, tiles_of_block = -(-batch.batch // sheet.images), block_tiles(sheet, lanes)
        input_bytes = planes_of(sheet) * sheet.plane * item
    else:
        lanes = choose_lanes(batch, sizes, dtype) if lanes is None else lanes
        blocks, input_bytes = -(-batch // lanes), sizes.features * lanes * item
    trace_at = blocks * input_bytes if keeps_inputs else 0
    silent_at, kept_bytes = (
        trace_at + blocks * tiles_of_block * kept_bytes_of_a_tile(sizes, dtype, options.activation, dropout, lanes)
        for dropout in (0.0, options.dropout)
    )
    work_bytes, common_bytes = (sizes.slots + sizes.widest) * lanes * item, 0
    if is_backward:
        parts, groups = min(blocks, 8), min(sizes.chunks, max(1, (4 if need_gx else 16) // blocks))
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


Job: TypeAlias = tuple[Program, Options, PatchGrid | None, int | None]
"""What is computed, besides the tensors: the forest, the options, the patches of images for a convolution, and a fixed
tile length for an op that compilers trace. A plain tuple, because one is made on every call."""


def run_forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, seed: Tensor | None, job: Job, y: Tensor | None = None
) -> tuple[Tensor, Tensor, bool]:
    """Outputs (batch, neurons) for inputs (batch, features), and what the backward pass needs: a block of memory, and
    whether it contains the inputs.

    Outputs are written to a new tensor, or to `y` if it is given, which may have any shape with that order of numbers
    in memory. With a grid, outputs are (images, neurons, height, width) for images (images, channels, height, width).
    """
    (program, options, grid, lanes), dtype = job, weight.dtype
    sizes, x, weight = program.sizes, x.resolve_neg(), weight.resolve_neg().contiguous()
    x, bias = x if x.is_contiguous() else _readable(x), None if bias is None else bias.resolve_neg().contiguous()
    batch, positions, of_y = (x.shape[0], 1, ()) if grid is None else _images(x, grid)
    if y is None:
        y = torch.empty((x.shape[0], sizes.neurons, *of_y), dtype=dtype)
    if not x.shape[0]:
        return y, _empty(0), False
    workers = workers_for(sizes.edges * x.shape[0] * positions)
    keeps_inputs = workers == 1 and lanes is None and grid is None and x.nbytes <= KEPT_INPUTS
    recipe = _recipe(batch, sizes, dtype, options, lanes, workers, keeps_inputs)
    kept = _empty(recipe.kept_bytes)
    if lanes is not None:  # compilers trace this op: no output may stay uninitialized, as the bits of inner edges
        kept.zero_()
    call = _prepare(recipe, x, weight, bias, kept, seed, job)
    call.y, call.y_sample, call.y_feature = y.data_ptr(), sizes.neurons * positions, positions
    _run(call, recipe)
    return y, kept, keeps_inputs


def run_backward(
    gy: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kept: Tensor,
    keeps_inputs: bool,
    seed: Tensor | None,
    job: Job,
    need_gx: bool,
) -> tuple[Tensor | None, Tensor, Tensor] | None:
    """Gradients of inputs (None if not needed), weights and biases; None if numbers are not finite."""
    (program, options, grid, lanes), dtype = job, weight.dtype
    sizes = program.sizes
    if not x.shape[0]:
        return torch.zeros_like(x) if need_gx else None, torch.zeros_like(weight), weight.new_zeros(sizes.nodes)
    # Hooks may have changed the layout of saved tensors.
    x, gy, weight, kept = x.resolve_neg(), gy.resolve_neg(), weight.resolve_neg().contiguous(), kept.contiguous()
    x, gy = x if x.is_contiguous() else _readable(x), gy if gy.is_contiguous() else _readable(gy)
    bias = None if bias is None else bias.resolve_neg().contiguous()
    batch, positions, _ = (x.shape[0], 1, ()) if grid is None else _images(x, grid)
    workers = workers_for(2 * sizes.edges * x.shape[0] * positions)
    recipe = _recipe(batch, sizes, dtype, options, lanes, workers, keeps_inputs, True, need_gx)
    parts = recipe.parts
    gw, gb = torch.empty(parts * sizes.edges, dtype=dtype), torch.empty(parts * sizes.nodes, dtype=dtype)
    call = _prepare(recipe, x, weight, bias, kept, seed, job)
    call.y, call.y_sample, call.y_feature = gy.data_ptr(), gy.stride(0), gy.stride(1)
    call.gw, call.gb, call.gx_numbers = gw.data_ptr(), gb.data_ptr(), x.numel()
    gx = None
    if need_gx:
        gx = _empty(recipe.groups * x.nbytes).view(dtype)
        call.gx, gx = gx.data_ptr(), gx[: x.numel()].view(x.shape)
    _run(call, recipe, is_backward=True)
    if call.failed:
        return None
    return gx, gw if parts == 1 else gw[: sizes.edges], gb if parts == 1 else gb[: sizes.nodes]


def _images(x: Tensor, grid: PatchGrid) -> tuple[Images, int, tuple[int, int]]:
    """The batch argument of `_recipe`, the positions per image, and the height and width of outputs."""
    images = Images(grid, x.shape[0], x.shape[2], x.shape[3])
    rows, columns = grid.counts(images.height, images.width)
    return images, rows * columns, (rows, columns)


def _prepare(
    recipe: Recipe, x: Tensor, weight: Tensor, bias: Tensor | None, kept: Tensor, seed: Tensor | None, job: Job
) -> TreeCall:
    """The struct of a call, with the addresses of what both passes read."""
    call, (program, _, grid, _), at = TreeCall.from_buffer_copy(recipe.call), job, kept.data_ptr()
    call.places = tables = program.tables.data_ptr()
    call.rows, call.chunk_table = tables + program.sizes.rows_at, tables + program.sizes.chunks_at
    if grid is not None and recipe.sheet is not None:
        call.shifted = program.shifted(grid, recipe.sheet)  # not a field: it lives as long as the struct
        call.rows = call.shifted.data_ptr()
    call.x, call.x_sample, call.x_feature = x.data_ptr(), x.stride(0), x.stride(1)
    call.weight = weight.data_ptr()
    if bias is not None:
        call.bias = bias.data_ptr()
    if seed is not None:
        call.seed = seed.data_ptr()
    if recipe.keeps_inputs:
        call.inputs = at
    call.trace, call.silent = at + recipe.trace_at, at + recipe.silent_at
    return call


_local = threading.local()


def _run(call: TreeCall, recipe: Recipe, is_backward: bool = False) -> None:
    """Run a kernel. Working memory is kept for the thread's next call; an interrupted call does not return it."""
    work: Tensor | None = vars(_local).pop("work", None)
    if work is None or work.shape[0] < recipe.work_bytes:
        work = _empty(recipe.work_bytes)
    call.products = at = work.data_ptr()
    call.work = at + recipe.common_bytes
    assert native.kernels is not None
    run = native.kernels.backward if is_backward else native.kernels.forward
    run(ctypes.addressof(call), recipe.is_double, recipe.length, recipe.workers)
    if recipe.work_bytes < HUGE_PAGES_FROM:
        _local.work = work


def _readable(x: Tensor) -> Tensor:
    """A tensor as the kernels can read it: samples or features of a matrix contiguous, images fully contiguous."""
    is_readable = x.dim() == 2 and (x.stride(1) == 1 or (x.stride(0) == 1 and x.shape[0] > 1))
    return x if is_readable else x.contiguous()


def _empty(size: int) -> Tensor:
    """Allocate uninitialized bytes, aligned to 64 for vector loads."""
    if size < HUGE_PAGES_FROM:
        return torch.empty(size, dtype=torch.uint8)
    memory = np.empty(size + 64, np.uint8)
    return torch.from_numpy(memory[-memory.ctypes.data % 64 :])[:size]
