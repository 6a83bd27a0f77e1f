"""The encoding of a table as numbers: its columns, and their form in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import FormatError, OptionError

from .columns import TableColumn, learn_column
from .reading import check_table, first_few


@dataclass(frozen=True)
class Encoded:
    """Rows of a table as inputs of a network."""

    x: NDArray[np.float64]
    unknown: dict[str, dict[str, int]]
    """For each column, its unknown cells and how often they occur: unseen categories, strings instead of numbers."""

    def notices(self, what: str = "what the model has not seen") -> Iterator[str]:
        """A sentence for each column with unknown cells, which are called `what`."""
        for name, found in self.unknown.items():
            rows = sum(found.values())
            holds = "row holds" if rows == 1 else "rows hold"
            shown = first_few([f"{cell!r:.40}" for cell in sorted(found, key=lambda cell: -found[cell])], 3)
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
            raise OptionError("a table must have a column to learn from besides its target: found none")
        return cls(columns, tuple((name, why) for name, why in learned.items() if isinstance(why, str)))

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [feature for column in self.columns for feature in column.features]

    def encode(self, frame: Any) -> Encoded:
        """Encode the rows of a table; columns that the model does not read are ignored."""
        frame = check_table(frame)
        absent = first_few([repr(each.name) for each in self.columns if each.name not in frame.columns], 10)
        if absent:
            raise OptionError(f"the table must have all columns that the model reads: it lacks {absent}")
        encoded = {column.name: column.encode(frame[column.name]) for column in self.columns}
        x = np.concatenate([inputs for inputs, _ in encoded.values()], axis=1)
        return Encoded(x, {name: unknown for name, (_, unknown) in encoded.items() if unknown})

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
            columns = tuple(map(_column, values["columns"]))
            left_out = tuple((str(each["name"]), str(each["why"])) for each in values["left_out"])
        except (TypeError, KeyError, OptionError) as error:
            raise FormatError(f"the columns of a table must have the fields of this version: {error!r:.200}") from None
        names = [column.name for column in columns]
        if not names or len(set(names)) < len(names):
            raise FormatError(f"the columns of a table must have different names, at least one: got {names!r:.80}")
        return cls(columns, left_out)


def _column(values: dict[str, Any]) -> TableColumn:
    texts = {key: values[key] for key in ("categories", "rare")}
    if not all(isinstance(each, list) for each in texts.values()):
        raise OptionError(f"categories must be lists of strings: got {texts!r:.80}")
    return TableColumn(**values | {key: tuple(each) for key, each in texts.items()})
