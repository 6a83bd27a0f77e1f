"""Exponential, tanh and sigmoid that vectorize: without SVML, `math.exp` is a function call per number.

exp(v) = 2^n exp(r), with n the integer nearest to v / log 2 and r the remainder, at most log(2) / 2, whose exponential
is a short Taylor series. The error is about 2 units in the last place; the rounding of log 2 adds 2e-9 n in float32,
3e-17 n in float64. tanh and sigmoid are quotients of exponentials, accurate to about 4 units; near 0, where
1 - exp(-2 |v|) would lose digits, tanh is a Taylor series.
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
    """The bits of a number shifted left, so that the lowest ones become the exponent."""
    mantissa = 23 if value == types.float32 else 52

    def build(builder, number):
        integer = ir.IntType(value.bitwidth)
        return builder.bitcast(builder.shl(builder.bitcast(number, integer), integer(mantissa)), number.type)

    return value(value), build


def _exponential(real: type[np.floating[Any]], mantissa: int, bias: int, least: float, degree: int) -> Any:
    """The exponential in one float type; below `least` it would be subnormal."""
    # Adding this rounds a small number to an integer, which ends up, plus the exponent bias, in the sum's last bits.
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
    """exp(v) for v up to 80. NaN stays NaN; results that would be subnormal are 0."""


@overload(exp, jit_options={"forceinline": True})
def _(v):
    return (lambda v: exp32(v)) if v == types.float32 else (lambda v: exp64(v))


def _tanh(real: type[np.floating[Any]], exponential: Any, terms: int) -> Any:
    """tanh in one float type; `terms` of its series are accurate up to `NEAR`."""
    last, *others = (real(c) for c in reversed(_tanh_series(terms)))
    coefficients, near, one, minus_two = tuple(others), real(NEAR), real(1), real(-2)

    @njit(**EXACT)
    def tanh(v):
        size, square = abs(v), v * v
        series = last
        for coefficient in coefficients:
            series = coefficient + square * series
        e = exponential(minus_two * size)
        far = (one - e) / (one + e)
        return v * series if size < near else (far if v > 0 else -far)

    return tanh


def _tanh_series(terms: int) -> list[float]:
    """Coefficients of v, v^3, v^5 ... in tanh(v), from tanh' = 1 - tanh^2.

    >>> [round(1 / c) for c in _tanh_series(3)]
    [1, -3, 8]
    """
    series = [1.0]
    for k in range(1, terms):
        series.append(-sum(series[i] * series[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return series


def _sigmoid(real: type[np.floating[Any]], exponential: Any) -> Any:
    """1 / (1 + exp(-v)), computed without a large exponential."""
    one = real(1)

    @njit(**EXACT)
    def sigmoid(v):
        e = exponential(-abs(v))
        return (e if v < 0 else one) / (one + e)

    return sigmoid


NEAR = 0.25
tanh32, tanh64 = _tanh(np.float32, exp32, 5), _tanh(np.float64, exp64, 11)
sigmoid32, sigmoid64 = _sigmoid(np.float32, exp32), _sigmoid(np.float64, exp64)


def tanh(v):
    """tanh(v) for any v."""


def sigmoid(v):
    """1 / (1 + exp(-v)) for any v; results that would be subnormal are 0."""


@overload(tanh, jit_options={"forceinline": True})
def _(v):
    return (lambda v: tanh32(v)) if v == types.float32 else (lambda v: tanh64(v))


@overload(sigmoid, jit_options={"forceinline": True})
def _(v):
    return (lambda v: sigmoid32(v)) if v == types.float32 else (lambda v: sigmoid64(v))
