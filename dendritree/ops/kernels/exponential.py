"""An exponential that vectorises: without SVML, `math.exp` is a call for each number.

exp(v) = 2^n exp(r), with n the whole number nearest v / log 2 and r what is left, at most log(2) / 2: a short Taylor
series. Exact to about 2 units in the last place; the rounding of log 2 adds 2e-9 n in float32, 3e-17 n in float64.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from .files import OPTIONS

# Reassociation, which the other kernels allow, would undo (v + c) - c and distribute the product with log 2.
EXACT = {**OPTIONS, "fastmath": {"contract"}, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}


@intrinsic
def shifted_bits(_context, value):
    """The bits of a number moved up, so that the lowest ones become the exponent."""

    def codegen(context, builder, _signature, arguments):
        single = value == types.float32
        integer = context.get_value_type(types.int32 if single else types.int64)
        bits = builder.shl(builder.bitcast(arguments[0], integer), integer(23 if single else 52))
        return builder.bitcast(bits, arguments[0].type)

    return value(value), codegen


@njit(**EXACT)
def series(r, a, b, c, d, e, f, g):
    """a + b r + c r^2 + ... + g r^6."""
    return a + r * (b + r * (c + r * (d + r * (e + r * (f + r * g)))))


# PUSH is 1.5 2^m plus the bias of exponents: added to a small number, it rounds it to a whole one and leaves that, plus
# the bias, in the lowest bits.
ONE32, LEAST32, PUSH32 = np.float32(1), np.float32(-87), np.float32(1.5 * 2**23 + 127)
LOG2_32, PER_LOG2_32 = np.float32(math.log(2)), np.float32(1 / math.log(2))
S2, S3, S4, S5, S6 = (np.float32(1 / math.factorial(k)) for k in range(2, 7))
LEAST64, PUSH64, LOG2_64, PER_LOG2_64 = -708.0, 1.5 * 2**52 + 1023, math.log(2), 1 / math.log(2)
D2, D3, D4, D5, D6, D7, D8, D9, D10, D11, D12 = (1 / math.factorial(k) for k in range(2, 13))


@njit(**EXACT)
def exp32(v):
    """exp(v) in float32."""
    inside = LEAST32 if v < LEAST32 else v
    pushed = inside * PER_LOG2_32 + PUSH32
    r = inside - (pushed - PUSH32) * LOG2_32
    value = series(r, ONE32, ONE32, S2, S3, S4, S5, S6) * shifted_bits(pushed)
    return ONE32 - ONE32 if v < LEAST32 else value


@njit(**EXACT)
def exp64(v):
    """exp(v) in float64."""
    inside = LEAST64 if v < LEAST64 else v
    pushed = inside * PER_LOG2_64 + PUSH64
    r = inside - (pushed - PUSH64) * LOG2_64
    value = series(r, 1.0, 1.0, D2, D3, D4, D5, series(r, D6, D7, D8, D9, D10, D11, D12)) * shifted_bits(pushed)
    return 0.0 if v < LEAST64 else value


def exp(v):
    """exp(v) for v up to 80. NaN stays NaN; what would be a subnormal number is 0."""


@overload(exp, jit_options={"forceinline": True})
def _(v):
    return (lambda v: exp32(v)) if v == types.float32 else (lambda v: exp64(v))
