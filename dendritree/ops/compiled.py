"""Compiling the kernels: once, for all processes, kept on disk."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..files import Lock

__all__ = ["Entry", "entry", "kernel"]

SIGNATURES = {
    "log_products": ["intp"] * 10 + ["real"],
    "log_products_backward": ["intp"] * 14 + ["real"],
    "depths": ["intp"] * 12 + ["real"],
    "smooth_depths": ["intp"] * 13 + ["real", "real"],
    "smooth_depths_backward": ["intp"] * 15 + ["real", "real"],
}
"""Arguments of the kernels for dendrites that read every input."""


class Entry(NamedTuple):
    """A compiled kernel that takes the address of a header."""

    call: Callable[[int], None]
    address: int
    compiled: Any
    """What holds the code in memory."""


@functools.cache
def entry(name: str, dtype: torch.dtype, lanes: int) -> Entry:
    """The compiled `forward` or `backward` for one number type and length of tiles.

    Compiled now or loaded from the cache on disk; of many processes that start together one compiles.
    """
    from .kernels import make_entry

    compiled = make_entry(name, np.float32 if dtype == torch.float32 else np.float64, lanes)
    _compile(compiled, compiled.compile)
    return Entry(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address), compiled.address, compiled)


@functools.cache
def kernel(name: str, dtype: torch.dtype) -> Callable[..., None]:
    """The compiled entry of another kernel for one number type; it skips Numba's own dispatch."""
    import numba

    from . import kernels

    real = numba.float32 if dtype == torch.float32 else numba.float64
    signature = [real if kind == "real" else getattr(numba, kind) for kind in SIGNATURES[name]]
    dispatcher = getattr(kernels, name)
    found: Callable[..., None] = _compile(dispatcher, lambda: dispatcher.compile(tuple(signature)))
    return found


def _compile(holder: Any, compile_now: Callable[[], Any]) -> Any:
    """Compile or load. A cache that cannot be read or written is repaired, or else not used: it only saves time."""
    from numba.core.caching import NullCache

    with _one_process_at_a_time(holder):
        try:
            return compile_now()
        except Exception:  # a damaged pickle may raise anything
            if isinstance(holder._cache, NullCache):
                raise
        with contextlib.suppress(Exception):
            holder._cache.flush()
            return compile_now()
        holder._cache = NullCache()
        return compile_now()


def _one_process_at_a_time(holder: Any) -> contextlib.AbstractContextManager[Any]:
    """A lock beside the index of this kernel in Numba's cache; nothing where there is no cache or no lock."""
    file = getattr(holder._cache, "_cache_file", None)
    with contextlib.suppress(OSError):
        if file is not None:
            return Lock(Path(file._index_path).with_suffix(".lock"), on_wait=lambda _: None)
    return contextlib.nullcontext()
