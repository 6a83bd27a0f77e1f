"""What all kernels share: how they compile, and how they reach memory and each other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.extending import intrinsic

from ..header import HEADER, SIZES, offset_of

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},  # sums vectorize; NaN and infinity stay what they are
}


def jit(function: Callable[..., Any]) -> Any:
    """Compile without the GIL and keep the result on disk, or in memory alone where no folder can be written."""
    try:
        dispatcher = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba found no place for its cache
        return njit(**OPTIONS)(function)
    # Numba calls its files stale when the function's own source file changes; a kernel has parts in several.
    dispatcher._cache._cache_file._source_stamp = SOURCE_STAMP
    return dispatcher


def source_stamp(folder: Path) -> str:
    """A digest of all that the kernels are compiled from."""
    sources = sorted([*folder.glob("*.py"), folder.parent / "header.py"])
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


SOURCE_STAMP = source_stamp(Path(__file__).parent)


def part(function: Callable[..., Any]) -> Any:
    """Compile as a part of other kernels only: no entry from Python, no file of its own."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True, **OPTIONS}
    return njit(**options)(function)


@intrinsic
def at(_context, address, like):
    """The numbers that lie at an address, of the type of `like`."""
    pointer = types.CPointer(like)

    def codegen(context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.intp, like), codegen


@intrinsic
def cast(_context, value, like):
    """A number in the type of another."""

    def codegen(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], signature.args[0], like)

    return like(value, like), codegen


@part
def fill(out, c, n):
    """out = c."""
    for j in range(n):
        out[j] = c


def _fields_at(fields: np.dtype[np.void]) -> Any:
    """A function that gives the named fields at an address."""
    record = from_dtype(fields)

    @intrinsic
    def fields_at(_context, address):
        def codegen(context, builder, _signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.intp), codegen

    return fields_at


call_at, sizes_at = _fields_at(HEADER), _fields_at(SIZES)

# ----------------------------------------------------------------------------------------------------- sharing work


@intrinsic
def count_up(_context, address):
    """Add one to a counter that threads share; its value before."""

    def codegen(_context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(64)))
        return builder.atomic_rmw("add", pointer, ir.IntType(64)(1), "seq_cst")

    return types.int64(types.intp), codegen


@intrinsic
def read_counter(_context, address):
    """The value of a counter that threads share."""

    def codegen(_context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(64)))
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(types.intp), codegen


WORKERS, FAILED = offset_of("workers"), offset_of("failed")


@part
def take(header, phase):
    """The next job of a phase."""
    return count_up(header + 16 * phase)


@part
def done(header, phase):
    """A job of a phase has ended."""
    count_up(header + 16 * phase + 8)


@part
def wait(header, phase, jobs):
    """Wait until all jobs of a phase have ended: others are at work on the last ones, for microseconds."""
    while read_counter(header + 16 * phase + 8) < jobs:
        pass


INT32 = np.int32(0)
