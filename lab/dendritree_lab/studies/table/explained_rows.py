"""Three rows of a table, explained: a typical one and two that a model finds hard."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.explanation import explain

from .controls import Predicted
from .table_fit import TableFit
from .table_model import UnknownCellsWarning


@dataclass(frozen=True)
class ExampleRow:
    """A row, its prediction, and what each column contributes to the output of the model."""

    why: str
    """Why this row is shown."""
    number: int
    """Number of the row in the table, from 1."""
    truth: str
    predicted: str
    """Prediction by a model that was not trained on the row, with its probability if it is a class."""
    about: str
    """What the parts add up to."""
    parts: tuple[tuple[str, str, float], ...]
    """Name of a column, its cell and its contribution, the largest first."""
    baseline: float
    """Output of the model for the mean training row."""
    output: float
    """Output of the model for this row: the baseline plus all contributions."""


def example_rows(fit: TableFit) -> list[ExampleRow]:
    """A typical row and hard ones: for classes, the most confident mistake and the least certain prediction; for
    numbers, the predictions with the largest errors in both directions."""
    classes = fit.model.estimator.classes_ if fit.model.task == "classification" else None
    truth = fit.y if classes is None else np.searchsorted(classes, fit.y)
    return [_example(fit, why, place, classes) for why, place in _chosen(truth, fit.predicted)]


def _chosen(truth: NDArray[Any], predicted: Predicted) -> Iterator[tuple[str, int]]:
    """Reasons and indices of rows; each row once."""
    certainty, rows = predicted.certainty, np.arange(len(truth))
    if len(certainty):
        right = truth == predicted.values
        wrong, usual = rows[~right], rows[right] if right.any() else rows
        typical = _nearest(usual, certainty, float(np.median(certainty[usual])))
        yield "typical", typical
        taken = {typical}
        if len(wrong):
            surest = int(wrong[certainty[wrong].argmax()])
            taken.add(surest)
            if surest != typical:
                yield "surest mistake", surest
        left = rows[~np.isin(rows, list(taken))]
        yield "least certain", int(left[certainty[left].argmin()])
        return
    errors = predicted.values - truth
    usual = rows[np.abs(errors) <= np.median(np.abs(errors))]
    typical = _nearest(usual, truth, float(np.median(truth)))
    yield "typical", typical
    left = rows[rows != typical]
    for why, place in (("most too high", errors[left].argmax()), ("most too low", errors[left].argmin())):
        yield why, int(left[place])


def _nearest(rows: NDArray[np.int64], values: NDArray[Any], middle: float) -> int:
    return int(rows[np.abs(values[rows] - middle).argmin()])


def _example(fit: TableFit, why: str, place: int, classes: NDArray[Any] | None) -> ExampleRow:
    row = fit.frame.iloc[place : place + 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCellsWarning)
        found = explain(fit.model, row)
    inputs, output, baseline = (each[0].cpu().numpy() for each in (found.inputs, found.output, found.baseline))
    value = fit.predicted.values[place]
    if classes is None:
        weights, about = np.ones(1), f"{fit.model.target}"
        truth, predicted = f"{fit.y[place]:.6g}", f"{value:.6g}"
    else:
        told, other = int(value), _other_class(fit.y[place], int(value), output, classes)
        if len(output) == 1:  # the log-odds of the second class
            weights = np.array([1.0 if told else -1.0])
        else:
            weights = np.eye(len(output))[told] - np.eye(len(output))[other]
        about = f"log-odds of {classes[told]} against {classes[other]}"
        truth, predicted = str(fit.y[place]), f"{classes[told]} ({fit.predicted.certainty[place]:.0%})"
    sizes = weights @ inputs
    order = np.argsort(-np.abs(sizes), kind="stable")
    parts = tuple((found.names[each], _cell(row[found.names[each]].iloc[0]), float(sizes[each])) for each in order)
    totals = float(weights @ baseline), float(weights @ output)
    return ExampleRow(why, int(fit.row_numbers[place]), truth, predicted, about, parts, *totals)


def _other_class(true: Any, told: int, output: NDArray[np.float64], classes: NDArray[Any]) -> int:
    """The class that a prediction is compared with: the true one after a mistake, otherwise the second choice."""
    if classes[told] != true:
        return int(np.searchsorted(classes, true))
    if len(output) == 1:
        return 1 - told
    return int(next(place for place in np.argsort(-output) if place != told))


def _cell(cell: Any) -> str:
    if cell is None or cell != cell:  # NaN and NaT
        return "missing"
    return f"{cell:.6g}" if isinstance(cell, float | np.floating) else str(cell)
