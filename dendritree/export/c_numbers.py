"""Numbers in C: constants, and formulas for tables of regular numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]


def literal(value: float) -> str:
    """A float constant in C.

    >>> literal(1), literal(0.1)
    ('1.0f', '0.100000001f')
    """
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def affine(variable: str, factor: int, shift: int = 0) -> str:
    """`variable * factor + shift` without redundant terms.

    >>> affine("i", 2, -1), affine("i", 1), affine("i", 0, 3)
    ('i * 2 - 1', 'i', '3')
    """
    text = "" if not factor else variable if factor == 1 else f"{variable} * {factor}"
    return f"{text} {'-' if shift < 0 else '+'} {abs(shift)}" if text and shift else text or str(shift)


def formula(values: Ints, variable: str) -> str | None:
    """A C expression for evenly spaced numbers, also in rows, planes and so on of equal length; None for others.

    >>> formula(np.array([3, 5, 7]), "n"), formula(np.array([0, 1, 2, 0, 1, 2]), "n"), formula(np.array([1, 4, 9]), "n")
    ('n * 2 + 3', '(n % 3)', None)
    """
    rises = np.diff(values)
    breaks = np.flatnonzero(rises != rises[:1])
    if not len(breaks):
        return affine(variable, int(rises[0]) if len(rises) else 0, int(values[0]) if len(values) else 0)
    run = int(breaks[0]) + 1
    rows = values.reshape(-1, run) if len(values) % run == 0 else values.reshape(1, -1)
    outer = formula(rows[:, 0], f"({variable} / {run})") if len(rows) > 1 else None
    if outer is None or (rows - rows[:, :1] != rows[0] - rows[0, 0]).any():
        return None
    inner = affine(f"({variable} % {run})", int(rises[0]))
    return inner if outer == "0" else outer if inner == "0" else f"{outer} + {inner}"


def by_parts(values: Ints, variable: str, ends: list[int]) -> str | None:
    """A formula for all values, or one per part, where parts end at `ends`; None if there is none."""
    whole = formula(values, variable)
    if whole is not None or not ends:
        return whole
    first = formula(values[: ends[0]], variable)
    shifted = f"({variable} - {ends[0]})"
    rest = by_parts(values[ends[0] :], shifted, [end - ends[0] for end in ends[1:]])
    return None if first is None or rest is None else f"({variable} < {ends[0]} ? {first} : {rest})"
