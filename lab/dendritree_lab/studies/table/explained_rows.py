"""Three rows of a table, explained: a typical one and two that the model finds hard."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.explanation import explain

from ...report.layout import Group
from .table_fit import TableFit
from .table_model import UnknownCellsWarning

PARTS_SHOWN = 8


def explained_rows(fit: TableFit) -> list[Group]:
    """A table for each of three rows: what each column adds to the output of the model for the mean training row.

    The rows are a typical one and, for classes, the most confident mistake and the least certain prediction; for
    numbers, the predictions with the largest errors in both directions.
    """
    return [_explained(fit, why, row, f"examples-{place}") for place, (why, row) in enumerate(_chosen(fit))]


def _chosen(fit: TableFit) -> Iterator[tuple[str, int]]:
    """Reasons and positions of rows; each row once."""
    predicted, certainty, rows = fit.predicted.values, fit.predicted.certainty, np.arange(fit.rows)
    if not len(certainty):
        errors = predicted - fit.y
        typical = _nearest(rows[np.abs(errors) <= np.median(np.abs(errors))], fit.y, float(np.median(fit.y)))
        left = rows[rows != typical]
        yield "typical", typical
        yield "largest overestimate", int(left[errors[left].argmax()])
        yield "largest underestimate", int(left[errors[left].argmin()])
        return
    right = fit.model.estimator.classes_[predicted] == fit.y
    wrong, usual = rows[~right], rows[right] if right.any() else rows
    taken = [_nearest(usual, certainty, float(np.median(certainty[usual])))]
    yield "typical", taken[0]
    if len(wrong):
        taken.append(int(wrong[certainty[wrong].argmax()]))
        if taken[1] != taken[0]:
            yield "most confident mistake", taken[1]
    left = rows[~np.isin(rows, taken)]
    yield "least certain", int(left[certainty[left].argmin()])


def _nearest(rows: NDArray[np.int64], values: NDArray[Any], middle: float) -> int:
    return int(rows[np.abs(values[rows] - middle).argmin()])


def _explained(fit: TableFit, why: str, place: int, name: str) -> Group:
    row, held_out, truth = fit.frame.iloc[place : place + 1], fit.predicted.values[place], fit.y[place]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCellsWarning)
        explanation = explain(fit.model, row)
    inputs, output, baseline = (
        each[0].cpu().numpy() for each in (explanation.inputs, explanation.output, explanation.baseline)
    )
    if fit.model.task == "regression":
        weights, about = np.ones(1), fit.model.target
        shown = f"{truth:.6g}", f"{held_out:.6g}", f"{output[0]:.6g}"
    else:
        classes = fit.model.estimator.classes_
        logits = np.array([0.0, output[0]]) if len(output) == 1 else output  # one is the log-odds of the second class
        value = int(logits.argmax())
        other = _other_class(truth, value, output, classes)
        if len(output) == 1:
            weights = np.array([1.0 if value else -1.0])
        else:
            weights = np.eye(len(output))[value] - np.eye(len(output))[other]
        about = f"log-odds of {classes[value]} against {classes[other]}"
        chance = 1 / np.exp(logits - logits.max()).sum()
        certainty = fit.predicted.certainty[place]
        shown = str(truth), f"{classes[held_out]} ({certainty:.0%})", f"{classes[value]} ({chance:.0%})"
    sizes = weights @ inputs
    order = np.argsort(-np.abs(sizes), kind="stable")
    first, others = order[:PARTS_SHOWN], order[PARTS_SHOWN:]
    parts: list[tuple[str, str | None, float]] = [("mean row", None, float(weights @ baseline))]
    parts += [
        (explanation.names[each], _cell(row[explanation.names[each]].iloc[0]), float(sizes[each])) for each in first
    ]
    parts += [(f"{len(others)} other columns", None, float(sizes[others].sum()))] if len(others) else []
    parts += [(f"sum: {about}", None, float(weights @ output))]
    number = int(fit.row_numbers[place])
    title = f"Row {number:,}, {why}: true {shown[0]}, held out {shown[1]}, predicted {shown[2]}"
    return Group(name, title, tuple((number, why, *shown, *part) for part in parts))


def _other_class(truth: Any, predicted: int, output: NDArray[np.float64], classes: NDArray[Any]) -> int:
    """The class that a prediction is compared with: the true one after a mistake, otherwise the second choice."""
    if classes[predicted] != truth:
        return int(np.searchsorted(classes, truth))
    if len(output) == 1:
        return 1 - predicted
    return int(next(place for place in np.argsort(-output) if place != predicted))


def _cell(cell: Any) -> str:
    if cell is None or cell != cell:  # NaN and NaT
        return "missing"
    return f"{cell:.6g}" if isinstance(cell, float | np.floating) else str(cell)
