"""Synthetic regression tables with a known structure, which shows what a model can and cannot learn.

Each function returns a frame and the targets, and depends only on its arguments. It adds to the stated signal normal
noise with a third of the signal's standard deviation, so the best R² that any model can expect is 0.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import import_extra

Made = tuple[Any, NDArray[np.float64]]
NOISE = 1 / 3
"""Standard deviation of the noise, relative to that of the signal."""


def additive(rows: int = 2000, seed: int = 0) -> Made:
    """A sum of smooth functions of single columns; ten columns, uniform in [-1, 1], of which five matter.

    y = 3 sin(pi x1) + 4 x2² + 2 |x3| + exp(2 x4) / 2 + 2 x5 + noise

    >>> x, y = additive(100)
    >>> x.shape, y.shape
    ((100, 10), (100,))
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, 10))
    signal = (
        3 * np.sin(np.pi * x[:, 0]) + 4 * x[:, 1] ** 2 + 2 * np.abs(x[:, 2]) + np.exp(2 * x[:, 3]) / 2 + 2 * x[:, 4]
    )
    return _frame(x), _noisy(signal, random)


def products(rows: int = 2000, seed: int = 0) -> Made:
    """Products of pairs of columns; ten standard normal columns, of which six matter.

    y = x1 x2 + x3 x4 + x5 x6 + noise

    >>> products(100)[0].shape
    (100, 10)
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 10))
    signal = x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + x[:, 4] * x[:, 5]
    return _frame(x), _noisy(signal, random)


def steps(rows: int = 5000, seed: int = 0) -> Made:
    """A piecewise constant function, like a decision tree; ten columns, uniform in [0, 1], of which six matter.

    y = (if x1 > 0.5: 3 if x2 > 0.3 else -1; otherwise: -3 if x3 > 0.6 else 1)
        + (if x4 > 0.7: 2 if x5 > 0.5 else -2; otherwise: 0) + (1 if x6 > 0.4 else 0) + noise

    >>> steps(100)[0].shape
    (100, 10)
    """
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, (rows, 10))
    first = np.where(x[:, 0] > 0.5, np.where(x[:, 1] > 0.3, 3, -1), np.where(x[:, 2] > 0.6, -3, 1))
    second = np.where(x[:, 3] > 0.7, np.where(x[:, 4] > 0.5, 2, -2), 0)
    return _frame(x), _noisy(first + second + (x[:, 5] > 0.4), random)


def radial(rows: int = 2000, seed: int = 0) -> Made:
    """Bumps around four centers; five columns, uniform in [-1, 1]; the centers c are drawn the same way.

    y = exp(-2 |x - c1|²) - exp(-2 |x - c2|²) + exp(-2 |x - c3|²) - exp(-2 |x - c4|²) + noise

    >>> radial(100)[0].shape
    (100, 5)
    """
    random = np.random.default_rng(seed)
    x, centers = random.uniform(-1, 1, (rows, 5)), random.uniform(-1, 1, (4, 5))
    squares = ((x[:, None] - centers) ** 2).sum(2)  # (rows, centers)
    return _frame(x), _noisy(np.exp(-2 * squares) @ np.array([1, -1, 1, -1]), random)


def wide(rows: int = 2000, seed: int = 0) -> Made:
    """A hundred standard normal columns, of which five matter.

    y = 2 x1 + 2 sin(2 x2) + x3 x4 + 2 |x5| + noise

    >>> wide(100)[0].shape
    (100, 100)
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 100))
    signal = 2 * x[:, 0] + 2 * np.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3] + 2 * np.abs(x[:, 4])
    return _frame(x), _noisy(signal, random)


def categories(rows: int = 2000, seed: int = 0) -> Made:
    """Numbers and categories that interact: x1 ... x4 uniform in [-1, 1]; c1, c2, c3 with 4, 6 and 3 values.

    y = slope[c1] x1 + shift[c2] + (2 x2 x3 if c3 is "a", x4 if c3 is "b", 0 if c3 is "c") + noise

    The slopes (standard deviation 2) and shifts (1) are normal and drawn from the seed.

    >>> list(categories(100)[0].dtypes.astype(str))[-4:]
    ['float64', 'category', 'category', 'category']
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, 4))
    slopes, shifts = random.normal(0, 2, 4), random.normal(0, 1, 6)
    first, second, third = (random.integers(0, count, rows) for count in (4, 6, 3))
    by_third = np.choose(third, [2 * x[:, 1] * x[:, 2], x[:, 3], np.zeros(rows)])
    frame = _frame(x)
    for name, codes in zip(("c1", "c2", "c3"), (first, second, third), strict=True):
        frame[name] = np.array(list("abcdef"))[codes]
        frame[name] = frame[name].astype("category")
    return frame, _noisy(slopes[first] * x[:, 0] + shifts[second] + by_third, random)


def _noisy(signal: NDArray[Any], random: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(signal + random.normal(0, NOISE * signal.std(), len(signal)), dtype=np.float64)


def _frame(x: NDArray[np.float64]) -> Any:
    pandas = import_extra("pandas", extra="tables")
    return pandas.DataFrame(x, columns=[f"x{place}" for place in range(1, x.shape[1] + 1)])
