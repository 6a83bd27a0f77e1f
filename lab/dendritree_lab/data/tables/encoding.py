"""The encoding of a table as numbers: what is learned about each column, and how its cells become inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import FormatError, OptionError, check_one_of

from .cells import MISSING, MISSING_NUMBERS, UNIQUE_LEAST, as_numbers
from .deciding import decide_schema
from .reading import check_table, first_few
from .schema import COUNTS_ROWS, ColumnSchema, TableSchema

KINDS = ("number", "category", "date")
MOST_CATEGORIES = 30
"""Maximum number of categories with their own input; rarer ones share one."""
UNIQUE_SHARE = 0.9
"""Share above which strings count as unique per row, and so are useless for other rows."""
MOST, MOST_DAYS = sys.float_info.max, 2_932_896.0
"""Limits of numbers, and of dates in days since 1970: the end of the year 9999."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that a model reads."""

    name: str
    kind: str
    """`number`, `category` or `date`."""
    fill: float = 0.0
    """Replaces a missing number or date: the median of the others."""
    categories: tuple[str, ...] = ()
    """Categories with their own input."""
    rare: tuple[str, ...] = ()
    """Categories that share one input."""
    missing: bool = False
    """Whether cells were missing in the training rows; if so, one input flags missing cells."""

    def __post_init__(self) -> None:
        check_one_of("kind", self.kind, KINDS)
        texts = (self.name, *self.categories, *self.rare)
        if not all(isinstance(text, str) for text in texts) or len(set(texts[1:])) < len(texts) - 1:
            raise OptionError(f"a column must have a name and distinct strings as categories: got {texts!r:.80}")
        if not isinstance(self.fill, float) or not abs(self.fill) <= (MOST_DAYS if self.kind == "date" else MOST):
            raise OptionError(f"fill of column {self.name!r:.60} must be a number in its range: got {self.fill!r:.60}")
        if not isinstance(self.missing, bool):
            raise OptionError(f"missing of column {self.name!r:.60} must be true or false: got {self.missing!r:.60}")

    @property
    def features(self) -> list[str]:
        """Names of its inputs.

        >>> TableColumn("town", "category", categories=("Delft", "Gouda"), missing=True).features
        ['town=Delft', 'town=Gouda', 'town is missing']
        """
        if self.kind == "category":
            names = [f"{self.name}={category}" for category in self.categories]
            names += [f"{self.name} is rare"] if self.rare else []
        elif self.kind == "date":
            names = [f"{self.name}: {part}" for part in ("day", "month", "weekday")]
        else:
            names = [self.name]
        return [*names, f"{self.name} is missing"] if self.missing else names

    def encode(self, cells: Any) -> tuple[Array, dict[str, int]]:
        """Inputs, one row per cell read by the schema, and counts of unseen categories, which count as missing."""
        import pandas

        unknown = {}
        if self.kind == "category":
            codes = pandas.Index([*self.categories, *self.rare]).get_indexer(cells.astype(object))  # -1 where absent
            own = len(self.categories)
            width = own + bool(self.rare)
            inputs = np.eye(width + 1, width)[np.minimum(codes, own)]  # -1 takes the last row: zeros
            absent = codes < 0
            unknown = cells[absent & cells.notna().to_numpy()].astype(object).value_counts().to_dict()
        else:
            numbers = as_numbers(cells)
            absent = np.isnan(numbers)
            filled = np.where(absent, self.fill, numbers)
            inputs = filled[:, None] if self.kind == "number" else _date_parts(filled)
        if self.missing:
            inputs = np.concatenate([inputs, absent[:, None]], axis=1)
        return inputs.astype(np.float64), unknown


def learn_column(cells: Any, schema: ColumnSchema) -> TableColumn | str:
    """Learn a column from its cells, read by the schema; returns a string with the reason if it is left out."""
    if COUNTS_ROWS in schema.notes:
        return COUNTS_ROWS
    name, present = str(cells.name), cells.dropna()
    missing, different = bool(cells.isna().any()), present.nunique()
    if different < (1 if missing else 2):
        return "is empty" if not len(present) else "has only one value"
    if not hasattr(cells, "cat"):
        numbers = as_numbers(present)
        middle = 2 * float(np.median(numbers / 2))  # the sum of two numbers near 1e308 is infinite
        return TableColumn(name, "date" if hasattr(cells, "dt") else "number", middle, missing=missing)
    counts = present.astype(object).value_counts()
    if len(counts) > UNIQUE_LEAST and len(counts) > UNIQUE_SHARE * len(present):
        return "has a different string in nearly every row, like names and identifiers"
    ordered = sorted(counts.index, key=lambda text: (-counts[text], text))
    frequent, rare = ordered[:MOST_CATEGORIES], ordered[MOST_CATEGORIES:]
    return TableColumn(name, "category", categories=tuple(frequent), rare=tuple(rare), missing=missing)


def _date_parts(days: Array) -> Array:
    """Day, month and weekday."""
    whole = np.floor(days).astype(np.int64)
    months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    return np.stack([days, months, (whole + 3) % 7], axis=1)  # 1970 began on a Thursday


def _surprises(counts: dict[str, int]) -> dict[str, int]:
    """Counts of texts without the words for a missing cell."""
    return {text: n for text, n in counts.items() if text not in MISSING and text.lower() not in MISSING_NUMBERS}


# ------------------------------------------------------------------------------------------------------ all columns


@dataclass(frozen=True)
class EncodedTable:
    """Rows of a table as inputs of a network."""

    x: Array
    unknown: dict[str, dict[str, int]]
    """For each column, the counts of its unknown cells: unseen categories, or strings instead of numbers."""

    def notices(self, what: str = "unknown to the model") -> Iterator[str]:
        """A sentence for each column with unknown cells, described by `what`."""
        for name, counts in self.unknown.items():
            rows = sum(counts.values())
            cells = "value" if rows == 1 else "values"
            shown = first_few([f"{cell!r:.40}" for cell in sorted(counts, key=lambda cell: -counts[cell])], 3)
            yield f"column {name!r}: {rows:,} {cells} {what}, treated as missing ({shown})"


@dataclass(frozen=True)
class TableEncoding:
    """Which columns of a table a model reads, and how."""

    schema: TableSchema
    columns: tuple[TableColumn, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """Names of the columns that the model does not read, each with the reason."""

    @classmethod
    def learn(cls, frame: Any, schema: TableSchema | None = None) -> TableEncoding:
        """Learn the columns of a data frame without its target.

        Args:
            frame: the training rows.
            schema: what their cells mean; by default decided from them.

        >>> import pandas
        >>> frame = pandas.DataFrame({"rooms": [3, 4, None], "town": ["Delft", "Gouda", "Delft"], "land": ["NL"] * 3})
        >>> encoding = TableEncoding.learn(frame)
        >>> encoding.features
        ['rooms', 'rooms is missing', 'town=Delft', 'town=Gouda']
        >>> encoding.encode(frame).x[1].tolist(), encoding.left_out
        ([4.0, 0.0, 0.0, 1.0], (('land', 'has only one value'),))
        """
        frame = check_table(frame)
        schema = decide_schema(frame) if schema is None else schema
        learned = {name: learn_column(cells, schema.columns[name]) for name, cells in schema.read(frame)[0].items()}
        ignored = [name for name in frame.columns if schema.columns[name].type == "ignore"]
        learned |= dict.fromkeys(ignored, "is ignored, as the schema says")
        columns = tuple(column for column in learned.values() if isinstance(column, TableColumn))
        if not columns:
            raise OptionError("a table must have a column to learn from besides its target: it has none")
        return cls(schema, columns, tuple((name, why) for name, why in learned.items() if isinstance(why, str)))

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [feature for column in self.columns for feature in column.features]

    def encode(self, frame: Any) -> EncodedTable:
        """Encode the rows of a table; columns that the model does not read are ignored."""
        frame = check_table(frame)
        absent = first_few([repr(each.name) for each in self.columns if each.name not in frame.columns], 10)
        if absent:
            raise OptionError(f"the table must have all columns that the model reads: it lacks {absent}")
        values, unreadable = self.schema.read(frame, [column.name for column in self.columns])
        encoded = {column.name: column.encode(values[column.name]) for column in self.columns}
        x = np.concatenate([inputs for inputs, _ in encoded.values()], axis=1)
        unknown = {name: _surprises(unreadable.get(name, {}) | unseen) for name, (_, unseen) in encoded.items()}
        return EncodedTable(x, {name: counts for name, counts in unknown.items() if counts})

    def as_dict(self) -> dict[str, Any]:
        """The encoding as JSON values."""
        return {
            "schema": self.schema.as_dict(),
            "columns": [asdict(column) for column in self.columns],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TableEncoding:
        """The inverse of `as_dict`."""
        try:
            columns = tuple(
                TableColumn(**each | {"categories": (*each["categories"],), "rare": (*each["rare"],)})
                for each in values["columns"]
            )
            left_out = tuple((str(each["name"]), str(each["why"])) for each in values["left_out"])
            schema = TableSchema.from_dict(values["schema"])
        except (TypeError, KeyError, OptionError) as error:
            raise FormatError(f"the columns of a table must have the fields of this version: {error!r:.200}") from None
        names = [column.name for column in columns]
        if not names or len(set(names)) < len(names):
            raise FormatError(f"the columns of a table must be one or more, with different names: got {names!r:.80}")
        if wrong := [
            each.name for each in columns if getattr(schema.columns.get(each.name), "type", None) != each.kind
        ]:
            raise FormatError(f"columns of a model must have the types of its schema: {wrong[0]!r:.60} does not")
        return cls(schema, columns, left_out)
