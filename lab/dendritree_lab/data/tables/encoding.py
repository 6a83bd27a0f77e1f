"""The encoding of a table as numbers: what is learned about each column, and how its cells become inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import FormatError, OptionError, check_one_of

from .reading import check_table, first_few

KINDS = ("number", "category", "date")
MOST_CATEGORIES = 30
"""Maximum number of categories with their own input; rarer ones share one."""
UNIQUE_SHARE, UNIQUE_LEAST = 0.9, 20
"""Limits from which a column of strings counts as unique per row, and so says nothing about other rows."""
NUMBER_SHARE = 0.95
"""Share of numbers from which a column is numeric; its other cells, such as "unknown", are missing."""
THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$"
DAY = 86_400.0  # seconds
MOST, MOST_DAYS = np.finfo(np.float64).max, 106_000.0
"""Limits of numbers, and of dates in days since 1970: pandas stores nanoseconds in 64 bits, 292 years either way."""

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
        """Inputs, one row per cell, and counts of the cells with unknown values, which are treated as missing."""
        import pandas

        if self.kind == "category":
            codes = pandas.Index([*self.categories, *self.rare]).get_indexer(as_text(cells))  # -1 where absent
            own = len(self.categories)
            width = own + bool(self.rare)
            inputs = np.eye(width + 1, width)[np.minimum(codes, own)]  # -1 takes the last row: zeros
            absent = codes < 0
        else:
            numbers = as_numbers(cells) if self.kind == "number" else as_days(cells)
            absent = ~np.isfinite(numbers)
            filled = np.where(absent, self.fill, numbers)
            inputs = filled[:, None] if self.kind == "number" else _date_parts(filled)
        if self.missing:
            inputs = np.concatenate([inputs, absent[:, None]], axis=1)
        unknown = absent & cells.notna().to_numpy()
        counts = as_text(cells[unknown]).value_counts() if unknown.any() else {}
        return inputs.astype(np.float64), {str(cell): int(count) for cell, count in counts.items()}


def learn_column(cells: Any) -> TableColumn | str:
    """Learn a column from its cells; returns a string with the reason if it is left out."""
    import pandas
    from pandas.api import types

    name, present = str(cells.name), cells.dropna()
    missing = bool(cells.isna().any())
    try:
        different = present.nunique()
    except TypeError:
        odd = next((cell for cell in present if not isinstance(cell, Hashable)), present.iloc[0])
        raise OptionError(f"cells must be numbers, strings or dates: column {name!r} holds {odd!r:.60}") from None
    if different < (1 if missing else 2):
        return "is empty" if not len(present) else "has only one value"
    categorical = types.is_bool_dtype(cells) or isinstance(cells.dtype, pandas.CategoricalDtype)
    typed = types.is_numeric_dtype(cells) and not categorical
    numbers = np.full(len(present), np.nan) if categorical else as_numbers(present)
    finite = np.isfinite(numbers)
    if typed and not finite.any():
        return "has no finite number"
    if typed or finite.mean() >= NUMBER_SHARE:
        counts_up = numbers[1:] == numbers[:-1] + 1
        if len(cells) > UNIQUE_LEAST and len(present) == len(cells) and counts_up.all():
            return "counts the rows"
        middle = 2 * float(np.median(numbers[finite] / 2))  # the sum of two numbers near 1e308 is infinite
        return TableColumn(name, "number", middle, missing=missing or not finite.all())
    days = as_days(present)
    if np.isfinite(days).all():
        return TableColumn(name, "date", float(np.median(days)), missing=missing)
    counts = as_text(present).value_counts()
    if len(counts) > UNIQUE_LEAST and len(counts) > UNIQUE_SHARE * len(present):
        share = f" ({finite.sum():,} of {len(present):,} cells are numbers)" if finite.any() else ""
        return f"has a different string in nearly every row, like names and identifiers{share}"
    ordered = sorted(counts.index, key=lambda text: (-counts[text], text))
    frequent, rare = ordered[:MOST_CATEGORIES], ordered[MOST_CATEGORIES:]
    return TableColumn(name, "category", categories=tuple(frequent), rare=tuple(rare), missing=missing)


def as_text(cells: Any) -> Any:
    """Cells as strings, with missing ones kept; an integer has no decimal point, whatever the type of its column."""

    def text(cell: Any) -> str:
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()

    return cells.astype(object).map(text, na_action="ignore")


def as_numbers(cells: Any) -> Array:
    """Cells as numbers, NaN for anything else; a string may be a number, also with thousands separators."""
    import pandas

    if not pandas.api.types.is_numeric_dtype(cells):
        cells = as_text(cells).str.replace(THOUSANDS, lambda number: number[0].replace(",", ""), regex=True)
    numbers: Array = pandas.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def as_days(cells: Any) -> Array:
    """Cells as days since 1970, NaN for anything that is not a date like 2026-11-16, with or without a time."""
    import pandas

    if not pandas.api.types.is_datetime64_any_dtype(cells):
        cells = as_text(cells)
        cells = cells.where(cells.str.match(r"\d{4}-\d\d-\d\d", na=False).to_numpy(dtype=bool))
    dates = pandas.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
    since = dates - pandas.Timestamp("1970-01-01", tz="UTC")
    seconds: Array = since.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan)
    return seconds / DAY


def _date_parts(days: Array) -> Array:
    """Day, month and weekday."""
    import pandas

    dates = pandas.to_datetime(days * DAY, unit="s", utc=True)
    return np.stack([days, dates.month.to_numpy(np.float64), dates.day_of_week.to_numpy(np.float64)], axis=1)


# ------------------------------------------------------------------------------------------------------ all columns


@dataclass(frozen=True)
class EncodedTable:
    """Rows of a table as inputs of a network."""

    x: Array
    unknown: dict[str, dict[str, int]]
    """For each column, its unknown cells and how often they occur: unseen categories, strings instead of numbers."""

    def notices(self, what: str = "what the model has not seen") -> Iterator[str]:
        """A sentence for each column with unknown cells, which are called `what`."""
        for name, counts in self.unknown.items():
            rows = sum(counts.values())
            holds = "row holds" if rows == 1 else "rows hold"
            shown = first_few([f"{cell!r:.40}" for cell in sorted(counts, key=lambda cell: -counts[cell])], 3)
            yield f"column {name!r}: {rows:,} {holds} {what}, taken as missing ({shown})"


@dataclass(frozen=True)
class TableEncoding:
    """Which columns of a table a model reads, and how."""

    columns: tuple[TableColumn, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """Names of the columns that the model does not read, each with the reason."""

    @classmethod
    def learn(cls, frame: Any) -> TableEncoding:
        """Learn the columns of a data frame without its target.

        >>> import pandas
        >>> frame = pandas.DataFrame({"rooms": [3, 4, None], "town": ["Delft", "Gouda", "Delft"], "land": ["NL"] * 3})
        >>> encoding = TableEncoding.learn(frame)
        >>> encoding.features
        ['rooms', 'rooms is missing', 'town=Delft', 'town=Gouda']
        >>> encoding.encode(frame).x[1].tolist(), encoding.left_out
        ([4.0, 0.0, 0.0, 1.0], (('land', 'has only one value'),))
        """
        learned = {str(name): learn_column(cells) for name, cells in check_table(frame).items()}
        columns = tuple(column for column in learned.values() if isinstance(column, TableColumn))
        if not columns:
            raise OptionError("a table must have a column to learn from besides its target: it has none")
        return cls(columns, tuple((name, why) for name, why in learned.items() if isinstance(why, str)))

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
        encoded = {column.name: column.encode(frame[column.name]) for column in self.columns}
        x = np.concatenate([inputs for inputs, _ in encoded.values()], axis=1)
        return EncodedTable(x, {name: unknown for name, (_, unknown) in encoded.items() if unknown})

    def as_dict(self) -> dict[str, Any]:
        """The encoding as JSON values."""
        return {
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
        except (TypeError, KeyError, OptionError) as error:
            raise FormatError(f"the columns of a table must have the fields of this version: {error!r:.200}") from None
        names = [column.name for column in columns]
        if not names or len(set(names)) < len(names):
            raise FormatError(f"the columns of a table must have different names, at least one: got {names!r:.80}")
        return cls(columns, left_out)
