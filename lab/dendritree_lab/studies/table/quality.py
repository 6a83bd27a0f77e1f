"""The quality of a table model on held-out rows: by class, or by the size of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESIDUAL_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class ClassScores:
    """Scores of a class; NaN if undefined, such as the precision of a class that is never predicted."""

    name: str
    rows: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class NumberScores:
    """How far predicted numbers are from the true ones."""

    r2: float
    """Explained share of the variance; 0 is as good as predicting the mean, negative is worse."""
    rmse: float
    mae: float
    """Mean absolute error."""
    bias: float
    """Mean of predicted minus true."""


def confusion(truth: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """The number of rows of each class (rows) that are predicted as each class (columns).

    >>> confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    return np.bincount(truth * classes + predicted, minlength=classes**2).reshape(classes, classes)


def class_scores(matrix: NDArray[np.int64], names: Sequence[str]) -> list[ClassScores]:
    """Precision, recall and F1 of every class of a confusion matrix.

    >>> class_scores(np.array([[1, 1], [0, 2]]), ["no", "yes"])[0]
    ClassScores(name='no', rows=2, precision=1.0, recall=0.5, f1=0.6666666666666666)
    """
    right, told, there = np.diag(matrix), matrix.sum(0), matrix.sum(1)
    numbers = (_ratio(right, told), _ratio(right, there), _ratio(2 * right, told + there))
    rows = zip(names, there, *numbers, strict=True)
    return [ClassScores(name, int(count), *map(float, scores)) for name, count, *scores in rows]


def _ratio(part: Any, whole: Any) -> Array:
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def number_scores(truth: Array, predicted: Array) -> NumberScores:
    """R², RMSE, mean absolute error and bias.

    >>> number_scores(np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    NumberScores(r2=0.5, rmse=0.7071067811865476, mae=0.5, bias=-0.5)
    """
    errors = predicted - truth
    squares = float(np.square(errors).mean())
    r2 = 1 - squares / float(np.square(truth - truth.mean()).mean())
    return NumberScores(r2, float(np.sqrt(squares)), float(np.abs(errors).mean()), float(errors.mean()))


def residual_quantiles(truth: Array, predicted: Array) -> list[tuple[float, float]]:
    """Quantiles of predicted minus true, each with its share of the rows.

    >>> residual_quantiles(np.zeros(3), np.array([-1.0, 0.0, 2.0]))[-1]
    (1.0, 2.0)
    """
    found = np.quantile(predicted - truth, RESIDUAL_QUANTILES)
    return [(share, float(error)) for share, error in zip(RESIDUAL_QUANTILES, found, strict=True)]
