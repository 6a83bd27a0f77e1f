"""Ctrl-C, which may come while anything is done: what remembers it, and what brings back one that was lost."""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

AGAIN_SECONDS = 0.02
"""After which an interrupt that was lost comes again."""


@contextlib.contextmanager
def interrupts_remembered() -> Iterator[list[int]]:
    """The interrupts so far, within a block that each of them ends.

    A package that is being imported may swallow one, as NumPy does, and fail later. Python itself drops one in a
    finalizer or a callback from C, of which Numba's compiler is full, and complains: that one is raised once more.
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
    try:
        with _lost_ones_again():
            yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _lost_ones_again() -> Iterator[None]:
    """Raise an interrupt that Python drops again, a moment later, when the finalizer or callback is over."""
    before, over = sys.unraisablehook, threading.Event()

    def again() -> None:
        if not over.wait(AGAIN_SECONDS):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # it may be waiting for something

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
