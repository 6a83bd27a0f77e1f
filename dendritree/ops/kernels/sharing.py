"""How threads that enter a kernel together share its work: they take jobs, which the header counts."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from ..header import JOBS, offset_of
from .parts import operation, part

PATHS, TILES, CHUNKS, INPUTS = (offset_of(f"{jobs}_taken") for jobs in JOBS)
WORKERS, FAILED = offset_of("workers"), offset_of("failed")
DONE = offset_of(f"{JOBS[0]}_done")  # offset from the counter of jobs taken to that of jobs done


@operation
def count_up(address):
    """Add one to a counter that threads share; return its previous value."""

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
    """Take the next job of a kind."""
    return count_up(header + jobs)


@part
def done(header, jobs):
    """Count a job of a kind as done."""
    count_up(header + jobs + DONE)


@part
def wait(header, jobs, count):
    """Wait until all jobs of a kind are done: a spin, since other threads need only microseconds for the last ones."""
    while read_counter(header + jobs + DONE) < count:
        pass


@part
def share_of(total, share, shares):
    """The first and one past the last of `0 ... total - 1` that belong to one of several shares."""
    return share * total // shares, (share + 1) * total // shares
