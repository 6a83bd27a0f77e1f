"""How a model uses the columns of a table: exact contributions, aggregated over rows.

`explain` decomposes every output into contributions of the columns, relative to the mean training row. Their mean size
is the importance of a column; plotted against the values of the column, they are its effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from dendritree.explanation import explain

from ...data.tables.cells import as_numbers
from ...data.tables.encoding import TableColumn
from ...data.tables.reading import check_table
from ..engine.statistics import CONFIDENCE
from .table_model import TableModel, UnknownCellsWarning

Array = NDArray[np.float64]
MOST_ROWS = 1000
"""Maximum number of rows to explain; from a longer table they are sampled with a seed."""
AT_ONCE = 200
"""Rows explained together: the contributions of every synapse to every output are held in memory."""
RESAMPLES = 1000
BINS = 12
"""Maximum number of points in the effect of a number, with about equally many rows each."""
QUANTILES = (0.1, 0.5, 0.9)
DAYS_A_YEAR = 365.2425
RARE, MISSING = "rare ones", "missing"


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of columns to the outputs of a model for some rows of a table."""

    frame: Any
    """The rows, read by the model's schema."""
    values: Array
    """Shape (rows, outputs, columns). With more than two classes, relative to the mean of all classes: a common
    offset changes no prediction."""
    columns: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Importance:
    """How much a column contributes: the mean size of its contributions, and its share among all columns."""

    column: str
    size: float
    """In the unit of the target, or in log-odds."""
    share: float
    low: float
    high: float
    """Ends of the 95% interval of the share, from resampled rows."""


@dataclass(frozen=True)
class EffectPoint:
    """Contributions of a column for one value or a narrow range of values."""

    value: float | str
    """For a number or a date (as a year), the median of the bin; otherwise a category, or `missing`."""
    rows: int
    low: float
    median: float
    high: float
    """The 10%, 50% and 90% quantiles of the contributions."""


@dataclass(frozen=True)
class Effect:
    """What a column contributes to an output, by its values."""

    column: str
    kind: str
    """`number`, `category` or `date`."""
    output: str
    """The class, or the target; with several classes, the one to which the column contributes most."""
    points: tuple[EffectPoint, ...]


def explain_rows(model: TableModel, frame: Any, *, seed: int = 0, most: int = MOST_ROWS) -> Contributions:
    """Contributions of the columns for the rows of a table, or for `most` of them, drawn with a seed.

    Args:
        model: the model of the table.
        frame: rows with the columns that the model reads.
        seed: seed of the sample.
        most: maximum number of rows.
    """
    if len(frame) > most:
        frame = frame.iloc[np.sort(np.random.default_rng(seed).choice(len(frame), most, replace=False))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCellsWarning)  # the user was warned when the model was made
        parts = [explain(model, frame.iloc[start : start + AT_ONCE]) for start in range(0, len(frame), AT_ONCE)]
    values = np.concatenate([part.inputs.cpu().numpy() for part in parts])
    if values.shape[1] > 1:
        values = values - values.mean(1, keepdims=True)
    read, _ = model.encoding.schema.read(check_table(frame))
    return Contributions(read, values, parts[0].names, parts[0].outputs)


def column_importances(contributions: Contributions, *, seed: int = 0) -> list[Importance]:
    """The columns by the size of their contributions, the strongest first, with intervals from resampled rows.

    Args:
        contributions: those of some rows.
        seed: seed of the bootstrap.

    >>> values = np.array([[[1.0, 3.0]], [[-1.0, -3.0]]])
    >>> column_importances(Contributions(None, values, ("area", "rooms"), ("price",)))[0]
    Importance(column='rooms', size=3.0, share=0.75, low=0.75, high=0.75)
    """
    strength = np.abs(contributions.values).mean(1)  # (rows, columns)
    rows = len(strength)
    drawn = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), RESAMPLES)  # (resamples, rows)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(_shares(drawn @ strength / rows), [tail, 1 - tail], axis=0)
    size = strength.mean(0)
    share = _shares(size)
    order = np.argsort(-size, kind="stable")
    numbers = (size, share, np.minimum(low, share), np.maximum(high, share))  # rounding may put equal shares outside
    return [Importance(contributions.columns[place], *(float(each[place]) for each in numbers)) for place in order]


def _shares(sizes: Array) -> Array:
    total = sizes.sum(-1, keepdims=True)
    return np.asarray(np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0))


def column_effects(
    contributions: Contributions, columns: Sequence[TableColumn], *, names: Sequence[str] | None = None
) -> list[Effect]:
    """What columns contribute, by their values.

    Args:
        contributions: those of some rows.
        columns: the columns of the model's encoding.
        names: which of them to include; by default all, in their order.
    """
    known = {column.name: column for column in columns}
    return [_effect(contributions, known[name]) for name in (known if names is None else names)]


def _effect(contributions: Contributions, column: TableColumn) -> Effect:
    values = contributions.values[:, :, contributions.columns.index(column.name)]  # (rows, outputs)
    output = int(np.abs(values).mean(0).argmax())
    given, cells = values[:, output], contributions.frame[column.name]
    if column.kind == "category":
        known = pandas.Index([*column.categories, *column.rare])
        codes = np.minimum(known.get_indexer(cells.astype(object)), len(column.categories))  # -1 where missing
        named = [*enumerate([*column.categories, RARE]), (-1, MISSING)]
        points = [_point(name, given[codes == code]) for code, name in named if (codes == code).any()]
    else:
        numbers = as_numbers(cells) if column.kind == "number" else 1970 + as_numbers(cells) / DAYS_A_YEAR
        points = [_point(float(np.median(numbers[part])), given[part]) for part in bins(numbers)]
        absent = ~np.isfinite(numbers)
        points += [_point(MISSING, given[absent])] if absent.any() else []
    return Effect(column.name, column.kind, contributions.outputs[output], tuple(points))


def bins(numbers: Array, most: int = BINS) -> list[NDArray[np.bool_]]:
    """Masks that split the finite numbers, in ascending order, into at most `most` bins; equal numbers share a bin.

    >>> [part.tolist() for part in bins(np.array([3.0, 1.0, np.nan, 1.0]))]
    [[False, True, False, True], [True, False, False, False]]
    """
    finite = np.isfinite(numbers)
    different = np.unique(numbers[finite])
    if len(different) > most:
        edges = np.unique(np.quantile(numbers[finite], np.linspace(0, 1, most + 1)[1:-1], method="lower"))
    else:
        edges = different[:-1]
    place = np.searchsorted(edges, numbers, side="left")
    parts = (finite & (place == number) for number in range(len(edges) + 1))
    return [part for part in parts if part.any()]


def _point(value: float | str, given: Array) -> EffectPoint:
    return EffectPoint(value, len(given), *np.quantile(given, QUANTILES).tolist())
