"""A small pool of threads for kernels that run without the GIL.

Numba's own `parallel=True` is not used: its OpenMP layer kills a forked child and its workqueue layer aborts when two
threads call at once. This pool is as large as `torch.get_num_threads()` asks for, serves any number of calling
threads, and is made anew in a forked child.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["run"]

Job = tuple[Callable[..., Any], Sequence[Any], "queue.SimpleQueue[BaseException | None]"]


class Pool:
    """Threads that wait for jobs; more are started when more are asked for, and none ever ends."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.size = 0
        self.lock = threading.Lock()

    def grow(self, size: int) -> None:
        """Have at least `size` threads."""
        with self.lock:
            while self.size < size:
                threading.Thread(target=self._work, name=f"dendritree-{self.size}", daemon=True).start()
                self.size += 1

    def _work(self) -> None:
        while True:
            function, arguments, done = self.jobs.get()
            try:
                function(*arguments)
                done.put(None)
            except BaseException as error:  # handed to the caller, who raises it
                done.put(error)


_pool = Pool()


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that nobody will open."""
    global _pool
    _pool = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run(function: Callable[..., Any], jobs: Sequence[Sequence[Any]]) -> None:
    """Call `function` once with each set of arguments, the first in this thread and the others in the pool.

    >>> seen = []
    >>> run(seen.append, [(1,), (2,), (3,)])
    >>> sorted(seen)
    [1, 2, 3]
    """
    if len(jobs) == 1:
        function(*jobs[0])
        return
    pool = _pool
    if pool.size < len(jobs) - 1:
        pool.grow(len(jobs) - 1)
    done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    for arguments in jobs[1:]:
        pool.jobs.put((function, arguments, done))
    errors = []
    try:
        function(*jobs[0])
    finally:  # never leave while others still write into our buffers
        errors = [error for _ in jobs[1:] if (error := done.get()) is not None]
    if errors:
        raise errors[0]
