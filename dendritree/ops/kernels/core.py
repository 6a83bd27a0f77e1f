"""What all kernels share: how they reach memory, and how threads share their work."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

from ..header import CHUNK, HEADER, JOBS, PLACE, SHEET, SIZES, offset_of
from .files import operation, part

INT32, UINT32 = np.int32(0), np.uint32(0)
"""Numbers that stand for their types: see `at`."""


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


call_at, sizes_at, sheet_at = _fields_at(HEADER), _fields_at(SIZES), _fields_at(SHEET)
place_at, chunk_at = _fields_at(PLACE), _fields_at(CHUNK)

# ----------------------------------------------------------------------------------------------------- sharing work

PATHS, TILES, CHUNKS, INPUTS = (offset_of(f"{jobs}_taken") for jobs in JOBS)
WORKERS, FAILED = offset_of("workers"), offset_of("failed")
DONE = offset_of(f"{JOBS[0]}_done")  # from the counter of jobs taken to that of jobs done


@operation
def count_up(address):
    """Add one to a counter that threads share; its value before."""

    def build(builder, address):
        pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(64)))
        return builder.atomic_rmw("add", pointer, ir.IntType(64)(1), "seq_cst")

    return types.int64(types.intp), build


@operation
def read_counter(address):
    """The value of a counter that threads share."""

    def build(builder, address):
        return builder.load_atomic(builder.inttoptr(address, ir.PointerType(ir.IntType(64))), "seq_cst", 8)

    return types.int64(types.intp), build


@part
def take(header, jobs):
    """The next job of a sort."""
    return count_up(header + jobs)


@part
def done(header, jobs):
    """A job of a sort has ended."""
    count_up(header + jobs + DONE)


@part
def wait(header, jobs, count):
    """Wait until all jobs of a sort have ended: others are at work on the last ones, for microseconds."""
    while read_counter(header + jobs + DONE) < count:
        pass


@part
def share_of(total, share, shares):
    """The first of `0 ... total - 1` that belongs to a share of several, and the first that no longer does."""
    return share * total // shares, (share + 1) * total // shares
