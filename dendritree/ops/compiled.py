"""Compiling the kernels: once, for all processes, kept on disk."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

__all__ = ["kernel", "typed_activation"]

SIGNATURES = {
    "forward": ["intp"] * 14 + ["real", "real", "intp", "boolean"],
    "backward": ["intp"] * 17 + ["real", "real", "intp", "boolean"],
    "input_gradient": ["intp"] * 13 + ["real", "real", "intp"],
    "transpose": ["intp"] * 6 + ["real"],
    "log_products": ["intp"] * 10 + ["real"],
    "log_products_backward": ["intp"] * 14 + ["real"],
    "depths": ["intp"] * 12 + ["real"],
    "smooth_depths": ["intp"] * 13 + ["real", "real"],
    "smooth_depths_backward": ["intp"] * 15 + ["real", "real"],
}
"""Arguments of the kernels; an activation comes last where there is one."""


@functools.cache
def kernel(name: str, dtype: torch.dtype, activation: str | None = None) -> Callable[..., None]:
    """The compiled entry of a kernel for one number type and activation; it skips Numba's own dispatch.

    Compiled now or loaded from the cache on disk; of many processes that start together one compiles.
    """
    import numba

    from . import kernels

    real = numba.float32 if dtype == torch.float32 else numba.float64
    signature = [real if kind == "real" else getattr(numba, kind) for kind in SIGNATURES[name]]
    if activation is not None:
        signature.append(numba.types.NamedUniTuple(real, 1, _activation_type(activation)))  # type: ignore[no-untyped-call]
    dispatcher = getattr(kernels, name)
    with _one_process_at_a_time(dispatcher):
        entry: Callable[..., None] = dispatcher.compile(tuple(signature))
    return entry


@functools.cache
def _activation_type(name: str) -> Callable[[float], Any]:
    from . import kernels

    return next(kind for kind in kernels.ACTIVATIONS if kind.__name__ == name)


@functools.lru_cache(maxsize=256)
def typed_activation(name: str, slope: float) -> Any:
    """An activation as the kernels take it: its type chooses their code."""
    return _activation_type(name)(slope)


@contextlib.contextmanager
def _one_process_at_a_time(dispatcher: Any) -> Iterator[None]:
    """Hold a lock beside Numba's cache while compiling; without a cache, or without locks, just go on."""
    folder = getattr(dispatcher._cache, "cache_path", None)
    try:
        import fcntl

        lock = None if folder is None else (Path(folder) / "dendritree.lock").open("w")
    except (ImportError, OSError):
        lock = None
    if lock is None:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing would not do if a child forked meanwhile has the file too
