"""Threads for tests of kernels."""

import pytest
import torch

from dendritree.ops import launch, threads


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def thread_counts(monkeypatch):
    """Work is shared however small it is; with how many threads each kernel was called."""
    counts, real = [], threads.run_together

    def counting(entry, header, count, memory):
        counts.append(count)
        real(entry, header, count, memory)

    monkeypatch.setattr(launch, "PARALLEL_FROM", 1)
    monkeypatch.setattr(threads, "run_together", counting)
    return counts
