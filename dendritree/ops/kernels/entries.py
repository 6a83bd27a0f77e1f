"""Compilation of kernels to machine code, for callers that do not depend on Numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from ..machine_code import Code
from .backward import backward
from .boxes import depths, smooth_depths, smooth_depths_backward
from .forward import forward
from .parts import OPTIONS
from .products import log_products, log_products_backward
from .tiles import zeros

DENSE = (log_products, log_products_backward, depths, smooth_depths, smooth_depths_backward)


@global_compiler_lock
def compile_kernel(name: str, real: type[np.floating[Any]], lanes: int, reals: Sequence[bool]) -> Code:
    """Compile a kernel for a float type and a tile length; `reals` says which arguments are of that type."""
    run = next((dense for dense in DENSE if dense.__name__ == name), None) or _made_of_tiles(name, real(0), lanes)
    number = from_dtype(np.dtype(real))
    signature = tuple(number if is_real else types.intp for is_real in reals), types.void
    options = {name: option for name, option in OPTIONS.items() if name != "nogil"}  # the caller holds no GIL anyway
    compiled: Any = CFunc(run, signature, locals={}, options=options)
    compiled.compile()
    library = compiled._library
    called = [function.name for function in library._final_module.functions if function.is_declaration]
    needs = [name for name in called if not name.startswith("llvm.")]
    return Code(compiled.native_name, needs, library._get_compiled_object())


def _made_of_tiles(name: str, real: Any, lanes: int) -> Any:
    kernel = {"forward": forward, "backward": backward}[name]

    def run(header):
        kernel(header, zeros(real, lanes))

    return run
