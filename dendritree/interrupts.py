"""Ctrl-C, which may come while anything is done: what lets it wait, what remembers it, what brings back a lost one."""

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
"""Packages whose C++ code swallows an interrupt in the middle of their import, or ends the process."""
AGAIN_SECONDS = 0.02
"""After which an interrupt that was lost comes again."""


@contextlib.contextmanager
def interrupts_held(leave: Callable[[], NoReturn] | None = None) -> Iterator[None]:
    """Let Ctrl-C wait until the block is done: in the middle of it nobody could say what is done and what is not.

    With `leave` it ends the process instead, and no exception passes through the block.

    >>> with interrupts_held():
    ...     pass
    """
    if threading.current_thread() is not threading.main_thread():  # signals go elsewhere
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
    """Finds brittle packages as ever, and lets Ctrl-C wait, or end the process, while they are imported."""

    def __init__(self, leave: Callable[[], NoReturn] | None) -> None:
        self.leave = leave

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of a brittle package; None for others, which are for the finders after us."""
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
    """The interrupts so far, within a block that each of them ends, and in which brittle packages are imported whole.

    Importing torch takes seconds. A process of our own need not wait for them: `leave` says so, and ends it.
    Another package that is being imported may swallow one and fail later. Python itself drops one in a finalizer or a
    callback from C, of which Numba's compiler is full, and complains: that one is raised once more.
    """
    seen: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        seen.append(number)
        signal.default_int_handler(number, frame)

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nobody else answers it, or ignores it
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
    """Raise an interrupt that Python drops again, a moment later, when the finalizer or callback is over."""
    before, over = sys.unraisablehook, threading.Event()

    def again() -> None:
        if not over.wait(AGAIN_SECONDS):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # it may wait for something
            else:  # Windows
                signal.raise_signal(signal.SIGINT)

    def hook(unraisable: sys.UnraisableHookArgs, /) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(again, ())  # not `Thread.start`: who knows which of its locks we are called with
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        over.set()
        sys.unraisablehook = before


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an error comes from Ctrl-C: packages that are being imported turn it into errors of their own.

    >>> was_interrupted(ImportError("initialization failed"))
    False
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
