"""The number of threads for training: it decides the order of sums, and so their last bits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from ..errors import check_int


@contextlib.contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Run a block with this many threads of torch, and restore the number afterwards; None changes nothing.

    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    if count is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(check_int("threads", count))
    try:
        yield
    finally:
        torch.set_num_threads(before)
