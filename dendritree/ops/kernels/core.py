"""What all kernels share: how they compile, and how they reach memory and each other."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core.caching import IndexDataCacheFile
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
    keep(dispatcher)
    return dispatcher


class KernelFile(IndexDataCacheFile):
    """Numba's files of one kernel, its index and its codes, read only if they are what was written.

    Each begins with a digest of itself, of Numba's version and of all our sources: Numba calls its files stale when the
    function's own source file changes, and a kernel has parts in several. It also loads whatever code the name in the
    index leads to. A process that was killed between the two writes may leave old code there, a bad disk anything, and
    wrong machine code ends the process that calls it.
    """

    def save(self, key, data):
        """Write a code with what it is of."""
        super().save(key, (key, data))

    def load(self, key):
        """Read a code; None if there is none of exactly that."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self):
        return self._read(self._index_path) or {}

    def _save_index(self, overloads):
        self._write(self._index_path, overloads)

    def _load_data(self, name):
        return self._read(self._data_path(name))

    def _save_data(self, name, data):
        self._write(self._data_path(name), data)

    def _write(self, path, value):
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._digest(content) + content)

    def _read(self, path):
        file = Path(path)
        if not file.is_file():  # to open a pipe would wait for somebody to write
            return None
        whole = file.read_bytes()
        size = hashlib.sha256().digest_size
        return pickle.loads(whole[size:]) if whole[:size] == self._digest(whole[size:]) else None

    def _digest(self, content):
        return hashlib.sha256(f"{self._version} {self._source_stamp} ".encode() + content).digest()


def keep(function: Any) -> None:
    """Let a function that Numba keeps on disk have files of ours."""
    function._cache._cache_file.__class__ = KernelFile
    function._cache._cache_file._source_stamp = SOURCE_STAMP


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
