"""The schema of a table, decided once from the training table: how its file is written and what its cells mean.

Everything that reads the table later, such as prediction, uses the schema, so the value of a cell does not depend on
other cells. `deciding.py` decides the schema; this file defines it, its JSON, and how it reads cells.
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dendritree.errors import FormatError, OptionError, check_one_of, nearest

from .cells import DAY, ORDERS, as_text, days_of, number_of

TYPES = ("number", "category", "date", "ignore")
COUNTS_ROWS = "counts the rows"
"""The note on a column that no model learns from; decided from the whole table, before any row is left out."""
LAST_YEAR = np.datetime64("9999-01-01", "ms")
FIRST_YEAR = np.datetime64("0002-01-01", "ms")
"""Dates from LAST_YEAR on, or before FIRST_YEAR, mean "never" and are missing."""


@dataclass(frozen=True)
class ColumnSchema:
    """What the cells of a column mean."""

    type: str
    """`number`, `category`, `date`, or `ignore` for a column that is not read."""
    missing: tuple[str, ...] = ()
    """Texts that mean a missing cell, besides the empty one."""
    decimal: str | None = None
    """The decimal mark of numbers, if it is not the table's."""
    order: str | None = None
    """Order of a date: `year first`, `day first` or `month first`."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the user should know about the decision; not stored."""

    def __post_init__(self) -> None:
        check_one_of("type of a column", self.type, TYPES)
        if not all(isinstance(text, str) for text in self.missing):
            raise OptionError(f"missing must be a list of strings: got {self.missing!r:.80}")
        if self.decimal is not None:
            check_one_of("decimal", self.decimal, (".", ","))
        if self.order is not None or self.type == "date":
            check_one_of("order of a date", self.order, ORDERS)


@dataclass(frozen=True)
class TableSchema:
    """The format of a table, and the type of each of its columns."""

    columns: dict[str, ColumnSchema]
    separator: str | None = None
    """Separator of the cells in a line; None if the table was not a text file: it is then detected in each file."""
    encoding: str | None = None
    decimal: str = "."
    thousands: str = ","
    """The thousands separator; spaces and apostrophes are also accepted."""

    def __post_init__(self) -> None:
        check_one_of("decimal", self.decimal, (".", ","))
        if not isinstance(self.thousands, str) or self.thousands == self.decimal or len(self.thousands) > 1:
            raise OptionError(
                f"thousands must be one character other than the decimal mark, or empty: got {self.thousands!r:.60}"
            )
        if self.separator is not None and (not isinstance(self.separator, str) or len(self.separator) != 1):
            raise OptionError(f"separator must be one character: got {self.separator!r:.60}")
        if self.encoding is not None:
            check_encoding(self.encoding)

    @property
    def notices(self) -> list[str]:
        """What the user should know about the decisions."""
        noted = [(name, note) for name, column in self.columns.items() for note in column.notes]
        return [f"column {name!r}: {note}" for name, note in noted if note != COUNTS_ROWS]

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, frame: Any, names: Any = None) -> tuple[Any, dict[str, dict[str, int]]]:
        """The cells of a table by this schema, and counts of the texts that it cannot read, which are missing.

        Numbers are float64, categories a pandas categorical, dates datetime64; reading the
        result again does not change it. Columns that the schema does not have, or ignores, are left out.

        Args:
            frame: a table with text cells, or with those of Parquet and pandas.
            names: the columns to read; by default all.
        """
        import pandas

        values, unreadable = {}, {}
        for name in self.columns if names is None else names:
            if name in frame.columns and self.columns[name].type != "ignore":
                values[name], failed = self._read_column(frame[name], self.columns[name])
                if failed:
                    unreadable[name] = failed
        return pandas.DataFrame(values, index=frame.index), unreadable

    def _read_column(self, cells: Any, column: ColumnSchema) -> tuple[Any, dict[str, int]]:
        import pandas
        from pandas.api import types

        missing = frozenset(column.missing)
        if column.type == "category":
            texts = as_text(cells)
            return texts.where(~texts.isin(missing)).astype("category"), {}
        if column.type == "number" and types.is_numeric_dtype(cells) and not types.is_complex_dtype(cells):
            numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.isinf(numbers)
            absent = infinite | (as_text(cells).isin(missing).to_numpy() if missing else False)
            return np.where(absent, np.nan, numbers), {"inf": int(infinite.sum())} if infinite.any() else {}
        if column.type == "date" and types.is_datetime64_any_dtype(cells):
            stamps = cells.dt.tz_convert(None) if cells.dt.tz is not None else cells
            moments = stamps.to_numpy().astype("datetime64[ms]")
            never = (moments >= LAST_YEAR) | (moments < FIRST_YEAR)
            return np.where(never, np.datetime64("NaT"), moments), {}
        codes, different = pandas.factorize(as_text(cells, column.decimal or self.decimal))
        read = self.cell_reader(column)
        found = np.array([math.nan if text in missing else read(text) for text in different] + [math.nan])
        found[~np.isfinite(found)] = np.nan  # the last one is for missing cells: their code is -1
        counts = np.bincount(codes[codes >= 0], minlength=len(different))
        bad = (place for place in np.flatnonzero(np.isnan(found[:-1])) if different[place] not in missing)
        failed = {str(different[place]): int(counts[place]) for place in bad}
        numbers = found[codes]
        if column.type == "date":
            whole = np.where(np.isnan(numbers), 0, np.round(numbers * DAY * 1000)).astype("datetime64[ms]")
            return np.where(np.isnan(numbers), np.datetime64("NaT"), whole), failed
        return numbers, failed

    def cell_reader(self, column: ColumnSchema) -> Callable[[str], float]:
        """The function that reads a text of a column of numbers or dates."""
        if column.type == "date":
            return functools.partial(days_of, order=str(column.order))
        decimal = column.decimal or self.decimal
        return functools.partial(number_of, decimal=decimal, thousands=thousands_of(decimal, self))

    # ---------------------------------------------------------------------------------------------------------- JSON

    def as_dict(self) -> dict[str, Any]:
        """The schema as JSON values."""
        table = {name: getattr(self, name) for name in ("separator", "encoding", "decimal", "thousands")}
        columns = {}
        for name, column in self.columns.items():
            optional: dict[str, Any] = {
                "missing": list(column.missing),
                "decimal": column.decimal,
                "order": column.order,
            }
            columns[name] = {"type": column.type} | {key: value for key, value in optional.items() if value}
        return {**table, "columns": columns}

    @classmethod
    def from_dict(cls, values: Any) -> TableSchema:
        """The inverse of `as_dict`."""
        try:
            values = check_overrides(values)
            columns = {
                str(name): ColumnSchema(**{**each, "missing": tuple(each.get("missing", ()))})
                for name, each in values["columns"].items()
            }
            return cls(**{**values, "columns": columns})
        except (OptionError, TypeError, KeyError, AttributeError) as error:
            raise FormatError(f"a schema must have the fields of this version: {error!s:.300}") from None


def thousands_of(decimal: str, schema: TableSchema) -> str:
    """The thousands separator for a decimal mark, which may be that of a single column."""
    return schema.thousands if decimal == schema.decimal else "," if decimal == "." else "."


def check_encoding(name: str) -> str:
    """The name of a text encoding that Python knows."""
    try:
        "".encode(name)
    except (LookupError, TypeError):
        raise OptionError(
            f"encoding must be one that Python knows, such as utf-8 or cp1252: got {name!r:.60}"
        ) from None
    return name


def check_overrides(values: Any) -> dict[str, Any]:
    """The entries of a schema that a user specifies, each optional; unknown ones are rejected."""
    tables, columns = (
        ("separator", "encoding", "decimal", "thousands", "columns"),
        ("type", "missing", "decimal", "order"),
    )
    if not isinstance(values, Mapping):
        raise OptionError(f"a schema must be a JSON object: got {values!r:.60}")
    given = values.get("columns", {})
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        raise OptionError(
            f'columns of a schema must be objects, one per column, such as {{"type": "category"}}: got {given!r:.80}'
        )
    for known, names in ((tables, [values]), (columns, given.values())):
        for name in (name for each in names for name in each):
            if name not in known:
                near = nearest(name, known)
                hint = f"; did you mean {near!r}?" if near else f"; known are {', '.join(known)}"
                raise OptionError(f"a schema must have only known entries: got {name!r:.60}{hint}")
    return dict(values)


def read_overrides(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """The entries of a schema in a JSON file, each optional; empty without a file."""
    if path is None:
        return {}
    try:
        return check_overrides(json.loads(Path(path).read_text(encoding="utf-8-sig")))
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} must be a JSON file with entries of a schema: {error!s:.200}") from None
