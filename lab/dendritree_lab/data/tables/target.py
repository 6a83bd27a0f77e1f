"""The column to predict: classes or numbers, and the rows that have a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import OptionError, check_one_of, import_extra

from ..labels import FEW_NUMBERS
from .columns import NUMBER_SHARE, as_numbers, as_text
from .reading import check_column, check_table, first_few

TASKS = ("auto", "classification", "regression")
FEWEST_ROWS = 20
MOST_CLASSES = 100


@dataclass(frozen=True)
class Target:
    """The column to predict, as read from a table."""

    name: str
    task: str
    """`classification` or `regression`."""
    rows: NDArray[np.int64]
    """Positions of the rows to learn from."""
    y: NDArray[Any]
    """Classes in their own type, or numbers as float64; one for each of `rows`."""
    notices: tuple[str, ...] = ()


def read_target(frame: Any, name: Any, task: str = "auto", *, per_class: int = 5) -> Target:
    """The target of a table.

    Rows without a target are left out, and so are rows of classes with fewer than `per_class` rows.

    >>> import pandas
    >>> target = read_target(pandas.DataFrame({"price": [1.5, None, *range(30)]}), "price")
    >>> target.task, len(target.rows), target.notices
    ('regression', 31, ("1 row has no 'price' and is left out",))
    """
    check_one_of("task", task, TASKS)
    frame = check_table(frame)
    name = check_column(frame, name, "the target")
    cells = frame[name]
    known = cells.notna().to_numpy()
    rows, present = np.flatnonzero(known), cells[known]
    absent, notices = len(cells) - len(rows), []
    if absent:
        one = absent == 1
        notices += [f"{absent:,} row{' has' if one else 's have'} no {name!r} and {'is' if one else 'are'} left out"]
    if not len(present):
        raise OptionError(f"the target must have values: {name!r} is empty")
    _check_rows(len(rows))
    chosen = _task(present, task)
    if chosen == "regression":
        y: NDArray[Any] = as_numbers(present)
        is_number = np.isfinite(y)
        if not is_number.all():
            shown, count = as_text(present[~is_number]).iloc[0], int((~is_number).sum())
            if task != "auto":
                raise OptionError(f"the target of a regression must be numbers: {name!r} holds {shown!r:.60}")
            are = "row whose target is not a number is" if count == 1 else "rows whose target is not a number are"
            notices.append(f"{count:,} {are} left out ({shown!r:.60})")
            rows, y = rows[is_number], y[is_number]
        if len(np.unique(y)) == 1:
            raise OptionError(f"the target must have different values: {name!r} is {y[0]:g} in every row")
    else:
        rows, y = _classes(name, rows, _labels(present), per_class, notices)
    _check_rows(len(rows))
    return Target(name, chosen, rows, y, tuple(notices))


def _check_rows(count: int) -> None:
    if count < FEWEST_ROWS:
        raise OptionError(f"a table must have at least {FEWEST_ROWS} rows with a target: got {count}")


def _task(present: Any, task: str) -> str:
    types = import_extra("pandas.api.types", extra="tables")
    if task != "auto":
        return task
    if types.is_bool_dtype(present):
        return "classification"
    numbers = as_numbers(present)
    is_number = np.isfinite(numbers)
    if not types.is_numeric_dtype(present) and is_number.mean() < NUMBER_SHARE:
        return "classification"
    numbers = numbers[is_number]
    few = len(np.unique(numbers)) <= FEW_NUMBERS and bool((numbers == np.round(numbers)).all())
    return "classification" if few else "regression"


def _labels(present: Any) -> NDArray[Any]:
    """Booleans and integers unchanged, whatever the type of their column; anything else as strings."""
    types = import_extra("pandas.api.types", extra="tables")
    cells = present.astype(object)
    kind = types.infer_dtype(cells)
    if kind == "boolean":
        return np.array(cells, dtype=bool)
    if kind in ("integer", "floating", "mixed-integer-float"):
        numbers = as_numbers(present)
        if ((numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**63)).all():
            return np.array([int(cell) for cell in cells], dtype=np.int64)  # floats would round large ones
    return np.array(as_text(cells), dtype=str)


def _classes(
    name: str, rows: NDArray[np.int64], y: NDArray[Any], per_class: int, notices: list[str]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    classes, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) == 1:
        raise OptionError(f"the target must have different values: {name!r} is {str(classes[0])!r:.60} in every row")
    if (counts >= per_class).sum() < 2:
        raise OptionError(
            f"at least two classes must have {per_class} rows or more: {name!r} has {len(classes):,} different values "
            f"in {len(rows):,} rows"
        )
    enough = counts[places] >= per_class
    few = int((~enough).sum())
    if few:
        rare = first_few([repr(str(each)) for each in classes[counts < per_class]], 3)
        are = "row is" if few == 1 else "rows are"
        notices.append(f"{few:,} {are} of classes with fewer than {per_class} and left out ({rare})")
    if (counts >= per_class).sum() > MOST_CLASSES:
        raise OptionError(
            f"a target must have at most {MOST_CLASSES} classes: {name!r} has {len(classes):,}; "
            "task='regression' predicts numbers"
        )
    return rows[enough], y[enough]


def score(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """The accuracy of classes, the RMSE of numbers.

    >>> score(np.array(["a", "b"]), np.array(["a", "a"])), score(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    (0.5, 1.4142135623730951)
    """
    if truth.dtype.kind != "f":
        return float((truth == predicted).mean())
    return float(math.sqrt(np.square(truth - predicted).mean()))
