"""Memory access of kernels: numbers and structs at an address."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from ..header import CHUNK, HEADER, PLACE, SHEET, SIZES
from .parts import part

INT32, UINT32 = np.int32(0), np.uint32(0)
"""Numbers that stand for their types: see `at`."""


@intrinsic
def at(_context, address, like):
    """A pointer to the numbers at an address, in the type of `like`."""
    pointer = types.CPointer(like)

    def codegen(context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.intp, like), codegen


@intrinsic
def cast(_context, value, like):
    """A number converted to the type of another."""

    def codegen(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], signature.args[0], like)

    return like(value, like), codegen


@part
def fill(out, c, n):
    """out = c."""
    for j in range(n):
        out[j] = c


def _fields_at(fields: np.dtype[np.void]) -> Any:
    """A function that returns the struct at an address."""
    record = from_dtype(fields)

    @intrinsic
    def fields_at(_context, address):
        def codegen(context, builder, _signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.intp), codegen

    return fields_at


call_at, sizes_at, sheet_at = _fields_at(HEADER), _fields_at(SIZES), _fields_at(SHEET)
place_at, chunk_at = _fields_at(PLACE), _fields_at(CHUNK)
