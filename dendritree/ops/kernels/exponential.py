"""An exponential that vectorises: without SVML, `math.exp` is a call for each number.

exp(v) = 2^n exp(r), with n the whole number nearest v / log 2 and r what is left, at most log(2) / 2: a short Taylor
series. Exact to about 2 units in the last place; the rounding of log 2 adds 2e-9 n in float32, 3e-17 n in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import overload

from .parts import OPTIONS, operation

# Reassociation, which the other kernels allow, would undo (v + c) - c and distribute the product with log 2.
EXACT = {**OPTIONS, "fastmath": {"contract"}, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}


@operation
def shifted_bits(value):
    """The bits of a number moved up, so that the lowest ones become the exponent."""
    mantissa = 23 if value == types.float32 else 52

    def build(builder, number):
        integer = ir.IntType(value.bitwidth)
        return builder.bitcast(builder.shl(builder.bitcast(number, integer), integer(mantissa)), number.type)

    return value(value), build


def _exponential(real: type[np.floating[Any]], mantissa: int, bias: int, least: float, degree: int) -> Any:
    """The exponential in one type of numbers; below `least` it would be a subnormal number."""
    # It rounds a small number that it is added to, and leaves it, plus the bias of exponents, in the sum's last bits.
    push = real(1.5 * 2**mantissa + bias)
    zero, lowest, log_2, per_log_2 = real(0), real(least), real(math.log(2)), real(1 / math.log(2))
    last, *others = (real(1 / math.factorial(k)) for k in range(degree, -1, -1))
    coefficients = tuple(others)

    @njit(**EXACT)
    def exponential(v):
        inside = lowest if v < lowest else v
        pushed = inside * per_log_2 + push
        r = inside - (pushed - push) * log_2
        series = last
        for coefficient in coefficients:
            series = coefficient + r * series
        return zero if v < lowest else series * shifted_bits(pushed)

    return exponential


exp32, exp64 = _exponential(np.float32, 23, 127, -87, 6), _exponential(np.float64, 52, 1023, -708, 12)


def exp(v):
    """exp(v) for v up to 80. NaN stays NaN; what would be a subnormal number is 0."""


@overload(exp, jit_options={"forceinline": True})
def _(v):
    return (lambda v: exp32(v)) if v == types.float32 else (lambda v: exp64(v))
