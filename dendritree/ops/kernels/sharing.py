"""How threads that enter a kernel together share its work: they take jobs, counted in the header."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from ..header import JOBS, offset_of
from .parts import operation, part

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
