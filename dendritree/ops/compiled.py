"""Look up kernels by name: each is compiled once for all processes, then loaded from its file."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock

from .machine_code import Code, CodeFile, Loaded, file_of, load

__all__ = ["Entry", "entry", "kernel"]

INTEGER, REAL = "integer", "real"
SIGNATURES = {
    "forward": [INTEGER],
    "backward": [INTEGER],
    "log_products": [INTEGER] * 10 + [REAL],
    "log_products_backward": [INTEGER] * 14 + [REAL],
    "depths": [INTEGER] * 12 + [REAL],
    "smooth_depths": [INTEGER] * 13 + [REAL, REAL],
    "smooth_depths_backward": [INTEGER] * 15 + [REAL, REAL],
}
"""Arguments of the kernels: the address of a header or, for dendrites that read every input, addresses and sizes."""


class Entry(NamedTuple):
    """A kernel that can be called."""

    call: Callable[..., None]
    address: int
    memory: Any
    """The object that keeps the code in memory."""


@functools.cache
def entry(name: str, dtype: torch.dtype, lanes: int = 0) -> Entry:
    """Return a kernel for one dtype and, if it works on tiles, their length.

    The kernel is loaded from its file, or compiled if there is none; of several processes that start together, one
    compiles.
    """
    real = np.float32 if dtype == torch.float32 else np.float64
    file = file_of(f"{name}-{real.__name__}-{lanes}")
    loaded = _read(file)
    if loaded is None:
        with _one_process_at_a_time(file):
            loaded = _read(file)  # another process may have compiled it in the meantime
            if loaded is None:
                code = _compile(name, real, lanes)
                file.write(code)
                loaded = load(code)
                assert loaded is not None
    kinds = {INTEGER: ctypes.c_ssize_t, REAL: ctypes.c_float if dtype == torch.float32 else ctypes.c_double}
    function = ctypes.CFUNCTYPE(None, *(kinds[kind] for kind in SIGNATURES[name]))
    return Entry(function(loaded.address), loaded.address, loaded.engine)


def kernel(name: str, dtype: torch.dtype) -> Callable[..., None]:
    """Return one of the kernels that do not work on tiles."""
    return entry(name, dtype).call


def _read(file: CodeFile) -> Loaded | None:
    code = file.read()
    return None if code is None else load(code)


def _compile(name: str, real: type[np.floating[Any]], lanes: int) -> Code:
    from .kernels import compile_kernel

    code: Code = compile_kernel(name, real, lanes, [kind == REAL for kind in SIGNATURES[name]])
    return code


def _one_process_at_a_time(file: CodeFile) -> contextlib.AbstractContextManager[Any]:
    """A lock next to the file of a kernel; a null context if no folder is writable."""
    path = file.writable()
    with contextlib.suppress(OSError):
        if path is not None:
            return FileLock(path.with_suffix(".lock"))
    return contextlib.nullcontext()
