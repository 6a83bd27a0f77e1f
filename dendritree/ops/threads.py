"""Threads for kernels: torch's own if they are available, else a small pool.

Torch's OpenMP threads stay awake between operations: they take over work in 1 to 5 microseconds, a pool of Python
threads in 20 to 70. A call returns when all its threads have finished, and Ctrl-C waits for them too. A forked child of
a process that used these threads would hang in them, as it would in torch's own operations, so one thread does all the
work there.

Numba's `parallel=True` is not used: its OpenMP layer kills a forked child and its workqueue layer aborts when two
threads call at once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from .compiled import Entry

__all__ = ["run", "run_together"]

Job = tuple[Callable[..., Any], Sequence[Any], object, "queue.SimpleQueue[BaseException | None]"]


class Pool:
    """Threads that wait for jobs; more are started on demand, and none ever ends."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.size = 0
        self.lock = threading.Lock()

    def grow(self, size: int) -> None:
        """Start threads until there are at least `size`."""
        with self.lock:
            while self.size < size:
                threading.Thread(target=self._work, name=f"dendritree-{self.size}", daemon=True).start()
                self.size += 1

    def _work(self) -> None:
        while True:
            function, arguments, memory, done = self.jobs.get()
            try:
                function(*arguments)
                done.put(None)
            except BaseException as error:  # handed to the caller, who raises it
                done.put(error)
            del function, arguments, memory, done  # do not hold these until the next job


_pool = Pool()
_is_forked_child = False


def _forget_threads() -> None:
    """Reset the pool: a forked child has none of its parent's threads, and maybe a lock that nobody will release."""
    global _pool, _is_forked_child
    _pool, _is_forked_child = Pool(), True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def run(function: Callable[..., Any], jobs: Sequence[Sequence[Any]], memory: object = None) -> None:
    """Call `function` once with each set of arguments, the first in this thread and the others in the pool.

    The threads hold a reference to `memory`, which they work on, until they are done: Ctrl-C may end the wait earlier.

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
        pool.jobs.put((function, arguments, memory, done))
    errors: list[BaseException] = []
    try:
        function(*jobs[0])
    finally:
        errors = [error for _ in jobs[1:] if (error := done.get()) is not None]
    if errors:
        raise errors[0]


@functools.cache
def _openmp() -> Callable[[int, int, int, int], None] | None:
    """`GOMP_parallel` of the OpenMP library that torch uses; None if torch uses another library, or none."""
    libraries = Path(torch.__file__).parent / "lib"
    try:
        parallel = ctypes.CDLL(str(libraries / "libtorch_cpu.so")).GOMP_parallel
    except (OSError, AttributeError):
        return None
    parallel.argtypes, parallel.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
    function: Callable[[int, int, int, int], None] = parallel
    return function


def run_together(entry: Entry, header: int, threads: int, memory: object) -> None:
    """Run a kernel in several threads at once; it divides its work among them.

    Args:
        entry: the kernel.
        header: the address of its header.
        threads: how many threads.
        memory: the memory it works on.
    """
    if threads == 1 or _is_forked_child:
        entry.call(header)
    elif (parallel := _openmp()) is not None:
        parallel(entry.address, header, threads, 0)
    else:
        run(entry.call, [(header,)] * threads, memory)
