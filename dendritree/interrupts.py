"""Handling of Ctrl-C, which may come at any moment: defer it, record it, and raise it again if it was lost."""

from __future__ import annotations

import _thread
import contextlib
import importlib.abc
import importlib.machinery
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, NoReturn

BRITTLE = ("numpy", "torch")
"""Packages whose C++ code swallows an interrupt during their import, or ends the process."""
AGAIN_SECONDS = 0.02
"""Delay after which a lost interrupt is raised again."""


@contextlib.contextmanager
def interrupts_held(leave: Callable[[], NoReturn] | None = None) -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, which would otherwise be left in an unknown state.

    With `leave`, Ctrl-C ends the process instead, and no exception passes through the block.

    >>> with interrupts_held():
    ...     pass
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: leave() if leave else held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
        if held:
            signal.raise_signal(signal.SIGINT)


class _WholeImports(importlib.abc.MetaPathFinder):
    """Finds brittle packages as usual, but defers Ctrl-C, or lets it end the process, while they are imported."""

    def __init__(self, leave: Callable[[], NoReturn] | None) -> None:
        self.leave = leave

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of a brittle package; None for others, which are left to the next finders."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in BRITTLE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_whole(module: ModuleType) -> None:
                with interrupts_held(self.leave):
                    execute(module)

            spec.loader.exec_module = execute_whole  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def interrupts_remembered(leave: Callable[[], NoReturn] | None = None) -> Iterator[list[int]]:
    """Record the interrupts of a block. Each of them ends the block, but not while a brittle package is imported.

    Importing torch takes seconds. A process of our own need not wait for that: `leave` ends it at once. Other packages
    may swallow an interrupt while they are imported, and fail later: the record then tells why. Python itself drops an
    interrupt in a finalizer or a callback from C, which Numba's compiler uses often, and only prints a warning: such an
    interrupt is raised again.
    """
    seen: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        seen.append(number)
        signal.default_int_handler(number, frame)

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nobody else handles or ignores it
    )
    if not ours:
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    finder = _WholeImports(leave)
    sys.meta_path.insert(0, finder)
    try:
        with _lost_ones_again():
            yield seen
    finally:
        sys.meta_path.remove(finder)
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _lost_ones_again() -> Iterator[None]:
    """Raise an interrupt that Python dropped once more, a moment later, when the finalizer or callback has returned."""
    before, over = sys.unraisablehook, threading.Event()

    def again() -> None:
        if not over.wait(AGAIN_SECONDS):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # wakes it up if it waits
            else:  # Windows
                signal.raise_signal(signal.SIGINT)

    def hook(unraisable: sys.UnraisableHookArgs, /) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(again, ())  # not `Thread.start`, whose locks may be held when we are called
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        over.set()
        sys.unraisablehook = before


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an error comes from Ctrl-C, which packages that are being imported turn into errors of their own.

    >>> was_interrupted(ImportError("initialization failed"))
    False
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
