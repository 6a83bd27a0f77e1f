"""What a worker does before and around a job: one thread of torch, random numbers of its own, kernels at hand."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator

import torch

from ...models import MLNBinaryClassifier

__all__ = ["alone_on_one_thread"]

_TORCH = threading.Lock()
"""One job at a time in a process: torch's random numbers are the process's, and a Dask worker may have threads."""


@contextlib.contextmanager
def alone_on_one_thread() -> Iterator[None]:
    """Train with one thread of torch and no other job of this process; torch's random numbers are put back."""
    with _TORCH:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            _load_kernels()
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            torch.set_num_threads(threads)


@functools.cache
def _load_kernels() -> None:
    """Load the fused kernels, or compile them, and what torch loads late, before a clock runs: once a process."""
    with torch.random.fork_rng(devices=[]):
        model = MLNBinaryClassifier(4, branching=2, dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        model(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
