"""What all kernels share: how they compile, how they reach memory, and the activations."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numba import njit, types
from numba.extending import intrinsic, overload

BLOCK = 256
"""Samples that run through a whole tree before the next ones do: their rows stay in the nearest caches."""

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},  # sums vectorise; NaN and infinity stay what they are
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
    sources = sorted([*folder.glob("*.py"), folder.parent / "program.py"])
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


# ------------------------------------------------------------------------------------------------------- activations
# The type of the last argument chooses the code, so that there is no branch inside a loop.


class LeakyReLU(NamedTuple):
    """v, or slope v where v is not positive; slope > 0."""

    slope: Any


class ReLU(NamedTuple):
    """v, or 0 where v is not positive."""

    slope: Any


class Tanh(NamedTuple):
    """tanh(v)."""

    slope: Any


class Sigmoid(NamedTuple):
    """1 / (1 + exp(-v))."""

    slope: Any


class Identity(NamedTuple):
    """v."""

    slope: Any


def activate(value: Any, one: Any, activation: Any) -> Any:
    """The activation of a sum."""


def backpropagate(gradient: Any, value: Any, one: Any, activation: Any) -> Any:
    """The gradient of a sum from that of its activation, whose value tells the derivative: all five allow that."""


_ACTIVATE = {
    LeakyReLU: lambda value, one, activation: value if value > 0 else value * activation.slope,
    ReLU: lambda value, one, activation: one - one if value <= 0 else value,  # NaN stays NaN
    Tanh: lambda value, one, activation: math.tanh(value),
    Sigmoid: lambda value, one, activation: one / (one + math.exp(-value)),
    Identity: lambda value, one, activation: value,
}
_BACKPROPAGATE = {
    LeakyReLU: lambda gradient, value, one, activation: gradient if value > 0 else gradient * activation.slope,
    ReLU: lambda gradient, value, one, activation: one - one if value <= 0 else gradient,  # never 0 times infinity
    Tanh: lambda gradient, value, one, activation: gradient * (one - value * value),
    Sigmoid: lambda gradient, value, one, activation: gradient * (value * (one - value)),
    Identity: lambda gradient, value, one, activation: gradient,
}
ACTIVATIONS = (LeakyReLU, ReLU, Tanh, Sigmoid, Identity)
overload(activate)(lambda value, one, activation: _ACTIVATE[activation.instance_class])
overload(backpropagate)(lambda gradient, value, one, activation: _BACKPROPAGATE[activation.instance_class])


@part
def fill(out, c, n):
    """out = c."""
    for j in range(n):
        out[j] = c


@jit
def transpose(source, target, rows, columns, column, last_column, one):
    """target[c, r] = source[r, c] for columns `column ... last_column - 1` of a (rows, columns) array, in tiles."""
    s, t = at(source, one), at(target, one)
    for panel in range(column, last_column, 256):  # what is written for 256 columns stays in the second cache
        last = min(panel + 256, last_column)
        for r in range(0, rows, 8):
            for c in range(panel, last, 32):
                if r + 8 <= rows and c + 32 <= last:
                    for i in range(c, c + 32):
                        for j in range(8):
                            t[i * rows + r + j] = s[(r + j) * columns + i]
                else:
                    for i in range(c, min(c + 32, last)):
                        for j in range(r, min(r + 8, rows)):
                            t[i * rows + j] = s[j * columns + i]
