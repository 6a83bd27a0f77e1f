"""Threads for tests of kernels."""

import pytest
import torch

from dendritree.ops import native


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def thread_counts(monkeypatch):
    """With how many threads each kernel was called."""
    counts = []

    def counting(kernel):
        return lambda *call: (counts.append(call[-1]), kernel(*call))

    for name in ("forward", "backward"):
        monkeypatch.setattr(native.kernels, name, counting(getattr(native.kernels, name)))
    return counts


@pytest.fixture
def always_threads(monkeypatch):
    """Work is shared however small it is."""
    monkeypatch.setattr(native, "PARALLEL_FROM", 1)
