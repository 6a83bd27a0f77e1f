"""The column of a table to predict: classes or numbers, the rows that have a target, and their split into parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import OptionError, check_one_of
from dendritree.training.examples import PARTS, Examples, cut

from ..arrays import FEW_NUMBERS, describe_parts
from ..split import DataSplit
from .cells import as_numbers, as_text, number_of
from .deciding import decide_schema
from .encoding import TableEncoding
from .reading import check_column, check_table, first_few
from .schema import TableSchema

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


def read_target(
    frame: Any, name: Any, task: str = "auto", *, per_class: int = 5, schema: TableSchema | None = None
) -> Target:
    """The target of a table.

    Rows without a target are left out, and so are rows of classes with fewer than `per_class` rows.

    >>> import pandas
    >>> target = read_target(pandas.DataFrame({"price": [1.5, None, *range(30)]}), "price")
    >>> target.task, len(target.rows), target.notices
    ('regression', 31, ("1 row left out: it has no 'price'",))
    """
    check_one_of("task", task, TASKS)
    frame = check_table(frame)
    name = check_column(frame, name, "the target")
    schema = decide_schema(frame[[name]]) if schema is None else schema
    kind = schema.columns[name].type
    if kind not in ("number", "category"):
        raise OptionError(
            f"the target must be numbers or classes: the schema says that {name!r} is of type {kind}; "
            f'types={{{name!r}: "category"}} reads classes'
        )
    cells = frame[name]
    values, texts = schema.read(frame, [name])[0][name], as_text(cells)
    known = (texts if kind == "number" else values).notna().to_numpy()
    rows, values, present = np.flatnonzero(known), values[known], cells[known]
    if not len(rows):
        raise OptionError(f"the target must have values: {name!r} is empty")
    _check_rows(len(rows))
    notices = _left_out(len(cells) - len(rows), f"no {name!r}")
    is_number = values.notna().to_numpy() if kind == "number" else np.zeros(len(rows), dtype=bool)
    if (task if task != "auto" else _task(values)) == "regression":
        if not is_number.all():
            others = texts.iloc[rows[~is_number]]
            shown = next((text for text in others if math.isnan(number_of(text, schema.decimal))), others.iloc[0])
            if task != "auto":
                raise OptionError(f"the target of a regression must be numbers: {name!r} holds {shown!r:.60}")
            notices += _left_out(int((~is_number).sum()), f"a target that is not a number ({shown!r:.60})")
        rows, y = rows[is_number], as_numbers(values[is_number])
        if len(np.unique(y)) == 1:
            raise OptionError(f"the target must have different values: {name!r} is {y[0]:g} in every row")
        _check_rows(len(rows))
        return Target(name, "regression", rows, y, tuple(notices))
    if kind == "number" and schema.separator is not None:  # the texts of a file are numbers; those of a frame are texts
        rows, present = rows[is_number], values[is_number]
    labels = _labels(present)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    frequent = counts >= per_class
    if len(classes) == 1:
        raise OptionError(f"the target must have different values: {name!r} is {str(classes[0])!r:.60} in every row")
    if frequent.sum() < 2:
        raise OptionError(
            f"at least two classes must have {per_class} rows or more: {name!r} has {len(classes):,} different values "
            f"in {len(rows):,} rows"
        )
    if frequent.sum() > MOST_CLASSES:
        raise OptionError(
            f"a target must have at most {MOST_CLASSES} classes: {name!r} has {len(classes):,}; "
            "task='regression' predicts numbers"
        )
    rare = first_few([repr(str(each)) for each in classes[~frequent]], 3)
    kept = frequent[codes]
    notices += _left_out(int((~kept).sum()), f"a class with fewer than {per_class} rows ({rare})")
    _check_rows(int(kept.sum()))
    return Target(name, "classification", rows[kept], labels[kept], tuple(notices))


def _left_out(count: int, what: str) -> list[str]:
    """A notice about rows that are left out, if there are any."""
    rows = "1 row left out: it has" if count == 1 else f"{count:,} rows left out: they have"
    return [f"{rows} {what}"] if count else []


def _check_rows(count: int) -> None:
    if count < FEWEST_ROWS:
        raise OptionError(f"a table must have at least {FEWEST_ROWS} rows with a target: got {count}")


def _task(values: Any) -> str:
    """Classification for categories and few distinct integers; otherwise regression."""
    if hasattr(values, "cat"):
        return "classification"
    numbers = as_numbers(values.dropna())
    few = len(np.unique(numbers)) <= FEW_NUMBERS and bool((numbers == np.round(numbers)).all())
    return "classification" if few else "regression"


def _labels(present: Any) -> NDArray[Any]:
    """Booleans and integers unchanged, whatever the type of their column; anything else as strings."""
    from pandas.api import types

    cells = present.astype(object)
    kind = types.infer_dtype(cells)
    if kind == "boolean":
        return np.array(cells, dtype=bool)
    if kind in ("integer", "floating", "mixed-integer-float"):
        numbers = cells.astype(np.float64)
        if ((numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**63)).all():
            return np.array([int(cell) for cell in cells], dtype=np.int64)  # floats would round large ones
    return np.array(as_text(cells), dtype=str)


def split_table(frame: Any, target: Any, *, seed: int = 0, name: str = "") -> DataSplit:
    """The rows of a data frame that have a target, with a fifth each for validation and test.

    Args:
        frame: the table.
        target: the column to predict.
        seed: seed of the split.
        name: the name of the data in reports.

    >>> import pandas
    >>> rows = pandas.DataFrame({"rooms": range(40), "town": ["Delft", "Gouda"] * 20, "sold": ["no", "yes"] * 20})
    >>> split = split_table(rows.sample(frac=1, random_state=0), "sold")
    >>> split.features, split.classes, [len(part) for part in split.parts]
    (('rooms', 'town=Delft', 'town=Gouda'), ('no', 'yes'), [24, 8, 8])
    """
    frame = check_table(frame)
    if target is None:
        columns = ", ".join(map(str, frame.columns[:20]))
        raise OptionError(f"target must name the column of the table to predict: its columns are {columns}")
    schema = decide_schema(frame)
    goal = read_target(frame, target, per_class=len(PARTS), schema=schema)
    inputs = frame.drop(columns=[goal.name]).iloc[goal.rows].reset_index(drop=True)
    classes: tuple[str, ...] = ()
    if goal.task == "classification":
        values, groups = np.unique(goal.y, return_inverse=True)
        classes, y = tuple(map(str, values.tolist())), groups.astype(np.int64)
    else:
        groups, y = np.zeros(len(inputs), np.int64), goal.y.astype(np.float32)
    parts = cut(groups, seed=seed)
    encoding = TableEncoding.learn(inputs.iloc[parts[0]], schema)
    encoded = [encoding.encode(inputs.iloc[rows]) for rows in parts]
    examples = [
        Examples(torch.from_numpy(part.x.astype(np.float32)), torch.from_numpy(y[rows]))
        for part, rows in zip(encoded, parts, strict=True)
    ]
    left_out = (f"column {column!r} {why}: left out" for column, why in encoding.left_out)
    unknown = (notice for part in encoded for notice in part.notices("not in the training rows"))
    sizes = describe_parts([len(part) for part in examples], ("val", "test"), seed)
    return DataSplit(
        *examples,
        features=tuple(encoding.features),
        classes=classes,
        name=name,
        notes=(sizes, *goal.notices, *left_out, *unknown),
    )
