"""The addresses of compiled kernels, for callers that know nothing of Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.ccallback import CFunc

from .backward import backward
from .files import keep
from .parts import OPTIONS
from .forward import forward
from .tiles import zeros


def _forward(real: Any, lanes: int) -> Any:
    def run(header):
        forward(header, zeros(real, lanes))

    return run


def _backward(real: Any, lanes: int) -> Any:
    def run(header):
        backward(header, zeros(real, lanes))

    return run


def make_entry(name: str, real: type[np.floating[Any]], lanes: int) -> Any:
    """A kernel for one type and length of tiles, as a C function of an address; not yet compiled.

    It is kept on disk, or in memory alone where no folder can be written.
    """
    # Not one function for both: what it would enclose, a kernel, is a part of the name in Numba's cache, and no two
    # processes write it down alike.
    run = {"forward": _forward, "backward": _backward}[name](real(0), lanes)
    options = {name: option for name, option in OPTIONS.items() if name != "nogil"}  # the caller holds no GIL anyway
    entry: Any = CFunc(run, ((types.intp,), types.void), locals={}, options=options)
    try:
        entry.enable_caching()
        keep(entry)
    except RuntimeError:  # numba found no place for its cache
        pass
    return entry
