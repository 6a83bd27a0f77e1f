"""Decide the schema of a table from its cells, once, and report what could be read differently."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path  # noqa: F401 - of the example
from typing import Any

import numpy as np

from dendritree.errors import OptionError, check_one_of

from .cells import LEADING_ZERO, MISSING, MISSING_NUMBERS, ORDERS, as_text, counts_rows, days_of, number_of
from .reading import TableFile, check_column, check_table, first_few, read_file
from .schema import COUNTS_ROWS, TYPES, ColumnSchema, TableSchema, check_overrides, thousands_of

SHARE = 0.95
"""Minimum share of numbers, or of dates of one order, for a text column of that type; other cells are missing."""
MARKS = {".": ",", ",": "."}
"""Decimal marks, each with its usual thousands separator."""
MANY = 0.5
"""Minimum share of numbers for a remark on a column of categories."""


def decide_schema(
    frame: Any,
    *,
    types: Mapping[str, str] | None = None,
    schema: Mapping[str, Any] | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> TableSchema:
    """The schema of a table.

    Args:
        frame: the table, with cells of text as in a file, or with the types of Parquet and pandas.
        types: column types to use instead of deciding them: `number`, `category`, `date` or `ignore`.
        schema: schema entries to use instead of deciding them, as in its JSON.
        separator, encoding: separator and encoding of the file.

    >>> import pandas
    >>> frame = pandas.DataFrame({"zip": ["00501", "10001"], "area": ["1,5", "1.234,0"], "sold": ["25.10.2025", "-"]})
    >>> [(name, column.type) for name, column in decide_schema(frame).columns.items()]
    [('zip', 'category'), ('area', 'number'), ('sold', 'date')]
    """
    frame, given = check_table(frame), check_overrides(schema or {})
    by_column = {name: dict(each) for name, each in given.pop("columns", {}).items()}
    for name, kind in (types or {}).items():
        by_column.setdefault(str(name), {})["type"] = kind
    for name, each in by_column.items():
        check_column(frame, name, "a column of the schema")
        if "type" in each:
            check_one_of(f"type of column {name!r}", each["type"], TYPES)
    texts = {name: _Texts.of(cells, by_column.get(name, {})) for name, cells in frame.items()}
    decimal = given.get("decimal") or _decimal(texts.values(), given.get("separator", separator))
    table = {"separator": separator, "encoding": encoding, "thousands": MARKS.get(decimal, ","), **given}
    decided = TableSchema({}, decimal=decimal, **{name: value for name, value in table.items() if name != "decimal"})
    day_first = _day_first(texts.values(), decided)
    columns = {name: _column(each, by_column.get(name, {}), decided, day_first) for name, each in texts.items()}
    decided = replace(decided, columns=columns)
    unique = [name for name in columns if frame[name].is_unique]
    counting = [name for name, cells in decided.read(frame, unique)[0].items() if counts_rows(cells)]
    return replace(decided, columns=columns | {name: replace(columns[name], notes=(COUNTS_ROWS,)) for name in counting})


def open_table(
    path: str | os.PathLike[str], *, types: Mapping[str, str] | None = None, schema: Mapping[str, Any] | None = None
) -> tuple[TableFile, TableSchema]:
    """A file and its schema; arguments as in `read_table`."""
    given = check_overrides(schema or {})
    file = read_file(path, separator=given.get("separator"), encoding=given.get("encoding"))
    return file, decide_schema(
        file.frame, types=types, schema=given, separator=file.separator, encoding=file.separator and file.encoding
    )


def read_table(
    path: str | os.PathLike[str], *, types: Mapping[str, str] | None = None, schema: Mapping[str, Any] | None = None
) -> Any:
    """The rows of a CSV or Parquet file as a pandas data frame of numbers, categories and dates.

    Args:
        path: the file.
        types: types of columns, as in `decide_schema`; all others are decided.
        schema: entries of a schema, as in its JSON.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = file.write_text("rooms;town\\n3;Delft\\n?;Gouda\\n")
    >>> read_table(file)["rooms"].tolist()
    [3.0, nan]
    """
    file, decided = open_table(path, types=types, schema=schema)
    return decided.read(check_table(file.frame))[0]


@dataclass(frozen=True, eq=False)
class _Texts:
    """The different texts of a column, how often each occurs, and what they can be read as."""

    typed: str | None
    """The type of a column whose cells are not text."""
    counts: Counter[str]
    """Without cells that are missing in a column of any type."""
    missing: tuple[str, ...]
    """The texts of those."""
    numbers: dict[str, dict[str, float]]
    """For each decimal mark, the texts that are numbers."""

    @classmethod
    def of(cls, cells: Any, given: Mapping[str, Any]) -> _Texts:
        typed, wanted = _typed(cells), given.get("type")
        if cells.dtype == bool and wanted == "number":
            typed = "number"
        if typed is not None and wanted not in (None, typed, "category", "ignore") and typed != "category":
            raise OptionError(f"type of column {cells.name!r} must be {typed}, category or ignore: got {wanted!r}")
        if typed is not None and (typed == wanted or typed != "category" or wanted not in ("number", "date")):
            return cls(typed, Counter(), (), {mark: {} for mark in MARKS})
        found = as_text(cells).value_counts()
        words = given.get("missing", MISSING)
        missing = tuple(sorted(text for text in found.index if text in words))
        counts = Counter({text: int(count) for text, count in found.items() if text not in words})
        numbers = {
            mark: {text: value for text in counts if (value := number_of(text, mark, other)) == value}
            for mark, other in MARKS.items()
        }
        return cls(None, counts, missing, numbers)

    def evidence(self) -> str | None:
        """The decimal mark with which more cells are numbers; None if it makes no difference."""
        point, comma = (self.rows(self.numbers[mark]) for mark in MARKS)
        return None if point == comma else "." if point > comma else ","

    def ambiguous(self) -> list[str]:
        """Texts that are different numbers with each decimal mark, such as 1.234."""
        point, comma = self.numbers.values()
        return [text for text in self.counts if text in point and text in comma and point[text] != comma[text]]

    def rows(self, texts: Any) -> int:
        """How many cells have one of these texts."""
        return sum(self.counts[text] for text in texts)

    def days(self, order: str) -> list[str]:
        """The texts that are dates of an order."""
        return [text for text in self.counts if not np.isnan(days_of(text, order))]


def _typed(cells: Any) -> str | None:
    """The type of a column by its dtype; None for text and anything else that must be looked at."""
    import pandas
    from pandas.api import types

    if types.is_complex_dtype(cells):
        raise OptionError(f"numbers must be real: column {cells.name!r} holds complex numbers; split it in two")
    if types.is_bool_dtype(cells) or isinstance(cells.dtype, pandas.CategoricalDtype):
        return "category"
    if types.is_numeric_dtype(cells):
        return "number"
    if types.is_datetime64_any_dtype(cells):
        return "date"
    if types.infer_dtype(cells, skipna=True) in ("string", "empty"):
        return None
    odd = next((cell for cell in cells if not isinstance(cell, Hashable) or isinstance(cell, complex)), None)
    if odd is not None:
        raise OptionError(f"cells must be numbers, strings or dates: column {cells.name!r} holds {odd!r:.60}")
    return None


def _decimal(columns: Any, separator: str | None) -> str:
    """The decimal mark of most columns; by default a point, or a comma if semicolons separate cells like `1,234`."""
    votes = Counter(mark for each in columns if (mark := each.evidence()))
    if votes["."] != votes[","]:
        return "." if votes["."] > votes[","] else ","
    commas = separator == ";" and any("," in text for each in columns for text in each.ambiguous())
    return "," if commas else "."


def _day_first(columns: Any, schema: TableSchema) -> bool:
    """Whether dates that can be read both ways have the day first: as other columns have, or as decimal commas do."""
    votes: Counter[bool] = Counter()
    for each in columns:
        day, month = (each.rows(each.days(order)) for order in ORDERS[1:])
        if day != month:
            votes[day > month] += 1
    if votes[True] != votes[False]:
        return votes[True] > votes[False]
    return schema.decimal == "," or schema.separator == ";"


def _column(texts: _Texts, given: Mapping[str, Any], schema: TableSchema, day_first: bool) -> ColumnSchema:
    """The schema of a column."""
    wanted = given.get("type", texts.typed)
    asked = {name: value for name, value in given.items() if name != "missing"}
    if wanted in ("category", "ignore") or (texts.typed is not None and texts.typed == wanted):
        iso = {"order": ORDERS[0]} if wanted == "date" else {}
        return ColumnSchema(**{"type": wanted, **iso, **asked}, missing=tuple(given.get("missing", texts.missing)))
    decimal = given.get("decimal") or texts.evidence() or schema.decimal
    total = texts.rows(texts.counts)
    words = [text for text in texts.counts if text.lower() in MISSING_NUMBERS]
    read = [text for text in texts.numbers[decimal] if text not in words]
    other = total - texts.rows(words)
    zeros = next((text for text in read if LEADING_ZERO.fullmatch(text)), None)
    if wanted == "number" or (wanted is None and texts.rows(read) >= max(SHARE * other, 1) and zeros is None):
        own = None if decimal == schema.decimal and "decimal" not in given else decimal
        notes = tuple(_number_notes(texts, read, decimal, schema))
        return ColumnSchema("number", _missing(texts, read), own, notes=notes)
    order, dates, both = _order(texts, given, day_first)
    if wanted == "date" or (wanted is None and texts.rows(dates) >= max(SHARE * other, 1)):
        dates = [text for text in dates if np.isfinite(days_of(text, order))]
        notes = (*_date_notes(dates, both, order), *_missing_notes(texts, dates))
        return ColumnSchema("date", _missing(texts, dates), order=order, notes=notes)
    return ColumnSchema("category", texts.missing, notes=tuple(_category_notes(texts, read, zeros, total)))


def _order(texts: _Texts, given: Mapping[str, Any], day_first: bool) -> tuple[str, list[str], bool]:
    """The order of a column's dates, the texts that are such dates, and whether another order has as many."""
    found = {order: texts.days(order) for order in ORDERS}
    counts = {order: texts.rows(each) for order, each in found.items()}
    if "order" in given:
        return given["order"], found.get(given["order"], []), False
    first = ORDERS[1] if day_first or any("." in text for text in found[ORDERS[1]]) else ORDERS[2]
    best = max((first, *ORDERS), key=counts.__getitem__)
    both = best != ORDERS[0] and 0 < counts[ORDERS[1]] == counts[ORDERS[2]]
    return best, found[best], both


def _missing(texts: _Texts, read: list[str]) -> tuple[str, ...]:
    return (*texts.missing, *sorted(set(texts.counts) - set(read)))


# ----------------------------------------------------------------------------------------------------------- remarks


def _missing_notes(texts: _Texts, read: list[str]) -> Iterator[str]:
    """A remark on the other cells in a column of numbers or dates."""
    known = set(read)
    words = [text for text in texts.counts if text not in known]
    if words:
        count = texts.rows(words)
        shown = first_few([f"{text!r:.40}" for text in sorted(words, key=lambda text: -texts.counts[text])], 3)
        yield f"{count:,} {'cell is' if count == 1 else 'cells are'} treated as missing ({shown})"


def _number_notes(texts: _Texts, read: list[str], decimal: str, schema: TableSchema) -> Iterator[str]:
    ambiguous = texts.ambiguous()
    marked = [text for text in read if "," in text or "." in text]
    commas = decimal == "," and all(len(text.partition(",")[2]) == 3 for text in marked)  # 0,138 is no thousand
    if marked and (len(ambiguous) == len(marked) or commas):
        text = (ambiguous or marked)[0]
        other = MARKS[decimal]
        value = number_of(text, decimal, thousands_of(decimal, schema))
        second = (
            float(text.replace(decimal, "").replace(other, ".")) if decimal in text else number_of(text, other, decimal)
        )
        yield (
            f"{text!r} is read as {value:.10g}, with decimal {'point' if decimal == '.' else 'comma'}; it could be "
            f'{second:.10g}: to change this, set "decimal": "{other}" in a schema'
        )
    yield from _missing_notes(texts, read)


def _date_notes(dates: list[str], both: bool, order: str) -> Iterator[str]:
    if both and dates:
        second = ORDERS[2] if order == ORDERS[1] else ORDERS[1]
        days = (str(np.datetime64(int(days_of(dates[0], each)), "D")) for each in (order, second))
        yield (
            f"{dates[0]!r} is read as {next(days)}, {order}; it could be {next(days)}: "
            + f'to change this, set "order": "{second}" in a schema'
        )


def _category_notes(texts: _Texts, read: list[str], zeros: str | None, total: int) -> Iterator[str]:
    count = texts.rows(read)
    if zeros is not None and count >= SHARE * total:
        yield f"numbers with leading zeros, such as {zeros!r:.40}, are read as categories unless type is number"
    elif total and count >= MANY * total:
        known = set(read)
        others = first_few([f"{text!r:.40}" for text in texts.counts if text not in known], 3)
        yield f"{count:,} of {total:,} cells are numbers, but not {others}: read as categories unless type is number"
    mixed = {text for order in ORDERS for text in texts.days(order)}
    if total and texts.rows(mixed) >= SHARE * total:
        yield "dates of different orders are read as categories unless type is date, with an order"
