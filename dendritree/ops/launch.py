"""Calling the fused kernels: giving them memory and threads; nothing numeric.

Everything here is features-major: a row holds one input, node or neuron for all samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from . import threads
from .compiled import kernel, typed_activation
from .dropout import limit_and_scale

__all__ = [
    "ITEM_SIZES",
    "empty_rows",
    "features_major",
    "ranges",
    "run_backward",
    "run_forward",
    "run_nodes_backward",
    "workers_for",
]

ITEM_SIZES = {torch.float32: 4, torch.float64: 8}
"""The number types the kernels compute in, and their bytes."""

NUMPY_TYPES = {torch.float32: np.float32, torch.float64: np.float64}

HUGE_PAGES_FROM = 1 << 22
"""Bytes from which NumPy asks for huge pages."""

PARALLEL_FROM = 4_000_000
"""Multiply-adds below which one thread does it all, about a millisecond of work: waking another costs 0.1 ms or more
where its core has gone to sleep (measured in a virtual machine; less elsewhere)."""


def empty_rows(rows: int, samples: int, dtype: torch.dtype) -> Tensor:
    """Uninitialised memory (rows, samples). Large ones come from NumPy, which asks the system for huge pages: touching
    40 MB for the first time took 3.5 ms instead of 16."""
    if rows * samples * ITEM_SIZES[dtype] < HUGE_PAGES_FROM:
        return torch.empty((rows, samples), dtype=dtype)
    return torch.from_numpy(np.empty((rows, samples), NUMPY_TYPES[dtype]))


def features_major(x: Tensor) -> Tensor:
    """Samples as columns: (..., features) -> (features, samples), contiguous."""
    flat = (x if x.dim() == 2 else x.reshape(-1, x.shape[-1])).t()
    if flat.is_contiguous():
        return flat
    source = flat.t().contiguous()
    samples, features = source.shape
    target = empty_rows(features, samples, x.dtype)
    run, head = kernel("transpose", x.dtype), (source.data_ptr(), target.data_ptr(), samples, features)
    workers = workers_for(features * samples)
    if workers == 1:
        run(*head, 0, features, 1.0)
    else:
        threads.run(run, [(*head, a, b, 1.0) for a, b in ranges(features, workers)])
    return target


def ranges(total: int, pieces: int) -> list[tuple[int, int]]:
    """Cut `0 ... total - 1` into at most so many runs."""
    pieces = min(pieces, total)
    return [(i * total // pieces, (i + 1) * total // pieces) for i in range(pieces)]


def run_forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tables: Tensor,
    sizes: Sequence[int],
    seed: Tensor | None,
    activation: str,
    slope: float,
    root_activation: bool,
    dropout: float,
    y: Tensor | None = None,
    acts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs and activations (nodes, batch), from inputs (features, batch).

    Outputs are new, (neurons, batch), or `y` if it is given: any shape, with that order of numbers in memory. So are
    the activations, which hold the sums of leaf dendrites already where a matmul has done them.
    """
    nodes, neurons, chunks = sizes[0], sizes[1], sizes[11:]
    batch, weight, dtype = x.shape[1], weight.contiguous(), weight.dtype
    bias = None if bias is None else bias.contiguous()
    acts = empty_rows(nodes, batch, dtype) if acts is None else acts
    y = torch.empty((neurons, batch), dtype=dtype) if y is None else y
    if not batch:
        return y, acts
    run, tables_at = kernel("forward", dtype, activation), tables.data_ptr()
    head = (
        x.data_ptr(),
        weight.data_ptr(),
        0 if bias is None else bias.data_ptr(),
        acts.data_ptr(),
        y.data_ptr(),
        tables_at + sizes[4],
        tables_at + sizes[5],
        0 if seed is None else seed.data_ptr(),
        batch,
    )
    limit, scale = limit_and_scale(dropout) if dropout else (0, 1.0)
    tail = (limit, scale, 1.0, ITEM_SIZES[dtype], root_activation, typed_activation(activation, slope))
    workers = workers_for(weight.shape[0] * batch)
    if workers == 1:
        run(*head, 0, chunks[-1], 0, batch, *tail)
    elif len(chunks) > 2:
        pieces = ranges(len(chunks) - 1, workers)
        threads.run(run, [(*head, chunks[a], chunks[b], 0, batch, *tail) for a, b in pieces])
    else:
        threads.run(run, [(*head, 0, chunks[-1], a, b, *tail) for a, b in ranges(batch, workers)])
    return y, acts


def run_backward(
    gy: Tensor,
    x: Tensor,
    weight: Tensor,
    acts: Tensor,
    tables: Tensor,
    sizes: Sequence[int],
    seed: Tensor | None,
    activation: str,
    slope: float,
    root_activation: bool,
    dropout: float,
    need_gx: bool = True,
    need_gb: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs (features, batch), weights and biases; empty where not needed."""
    options = (activation, slope, root_activation, dropout)
    grads, gw, gb = run_nodes_backward(
        gy, x, weight, acts, tables, sizes, seed, *options, keep=need_gx, need_gb=need_gb
    )
    (features, batch), dtype = x.shape, weight.dtype
    gx = empty_rows(features if need_gx else 0, batch, dtype)
    if need_gx and batch:
        weight, at = weight.contiguous(), tables.data_ptr()
        limit, scale = limit_and_scale(dropout) if dropout else (0, 1.0)
        head = (
            weight.data_ptr(),
            grads.data_ptr(),
            gx.data_ptr(),
            at + sizes[4],
            at + sizes[7],
            at + sizes[8],
            at + sizes[9],
            at + sizes[10],
            0 if seed is None else seed.data_ptr(),
            batch,
        )
        pieces = ranges(features, workers_for(weight.shape[0] * batch))
        jobs = [(*head, a, b, limit, scale, 1.0, ITEM_SIZES[dtype]) for a, b in pieces]
        threads.run(kernel("input_gradient", dtype), jobs)
    return gx, gw, gb


def run_nodes_backward(
    gy: Tensor,
    x: Tensor,
    weight: Tensor,
    acts: Tensor,
    tables: Tensor,
    sizes: Sequence[int],
    seed: Tensor | None,
    activation: str,
    slope: float,
    root_activation: bool,
    dropout: float,
    *,
    keep: bool,
    need_gb: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of nodes at their homes, of weights and biases; `keep` keeps those of nodes with synapses."""
    nodes, chunks = sizes[0], sizes[11:]
    batch, weight, dtype = x.shape[1], weight.contiguous(), weight.dtype
    grads = empty_rows(sizes[3] if keep else sizes[2], batch, dtype)
    if not batch:
        return grads, torch.zeros_like(weight), weight.new_zeros(nodes if need_gb else 0)
    # Threads share a layer that cannot be cut by its samples: parts of them have their own sums of gradients. How
    # many depends on the sizes alone, and so the order of all sums.
    parts = 1 if len(chunks) > 2 else max(1, min(8, batch // 256))
    edges, item, workers = weight.shape[0], ITEM_SIZES[dtype], workers_for(weight.shape[0] * batch)
    gw, gb = torch.empty((parts, edges), dtype=dtype), torch.empty((parts, nodes if need_gb else 0), dtype=dtype)
    entry, at = kernel("backward", dtype, activation), tables.data_ptr()
    head = (x.data_ptr(), weight.data_ptr(), acts.data_ptr(), gy.data_ptr(), grads.data_ptr())
    seed_at = 0 if seed is None else seed.data_ptr()
    middle = (at + sizes[4], at + sizes[5], at + (sizes[7] if keep else sizes[6]), seed_at, batch)
    limit, scale = limit_and_scale(dropout) if dropout else (0, 1.0)
    tail = (limit, scale, 1.0, item, root_activation, typed_activation(activation, slope))

    def run(part: int, place: int, last_place: int, sample: int, last_sample: int) -> None:
        gw_at = gw.data_ptr() + part * edges * item
        gb_at = gb.data_ptr() + part * nodes * item if need_gb else 0
        entry(*head, gw_at, gb_at, *middle, place, last_place, sample, last_sample, *tail)

    def run_parts(first: int, last: int) -> None:
        for part in range(first, last):
            run(part, 0, chunks[-1], *samples[part])

    samples = ranges(batch, parts)
    if parts > 1:
        threads.run(run_parts, ranges(parts, workers))
    elif workers == 1:
        run(0, 0, chunks[-1], 0, batch)
    else:
        threads.run(run, [(0, chunks[a], chunks[b], 0, batch) for a, b in ranges(len(chunks) - 1, workers)])
    return grads, _ordered_sum(gw), _ordered_sum(gb)


def workers_for(multiply_adds: int) -> int:
    """Threads worth waking."""
    return torch.get_num_threads() if multiply_adds >= PARALLEL_FROM else 1


def _ordered_sum(parts: Tensor) -> Tensor:
    """The sum over parts, first to last, whatever the number of threads."""
    total = parts[0]
    for part in range(1, parts.shape[0]):
        total = total + parts[part]
    return total
