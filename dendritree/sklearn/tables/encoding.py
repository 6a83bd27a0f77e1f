"""A table as numbers: its columns, each learned once, and the versioned JSON that keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, OptionError
from .columns import Column, learn_column
from .reading import check_table

__all__ = ["Encoded", "TableEncoding"]


@dataclass(frozen=True)
class Encoded:
    """Rows of a table as a network takes them."""

    x: NDArray[np.float64]
    unknown: dict[str, dict[str, int]]
    """For each column, what it cannot know and in how many rows: unseen categories, texts in place of numbers."""

    def notices(self, what: str = "what the model has not seen") -> Iterator[str]:
        """A sentence for each column with something unknown, which is called `what`."""
        for name, found in self.unknown.items():
            rows, most = sum(found.values()), sorted(found, key=lambda cell: -found[cell])[:3]
            shown = ", ".join(f"{cell!r:.40}" for cell in most) + (", ..." if len(found) > len(most) else "")
            holds = "row holds" if rows == 1 else "rows hold"
            yield f"column {name!r}: {rows:,} {holds} {what}, taken as missing ({shown})"


@dataclass(frozen=True)
class TableEncoding:
    """Which columns of a table a model reads, and how."""

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """Names of the columns that it does not read, and why."""

    @classmethod
    def learn(cls, frame: Any) -> TableEncoding:
        """From a data frame without its target.

        >>> import pandas
        >>> frame = pandas.DataFrame({"rooms": [3, 4, None], "town": ["Delft", "Gouda", "Delft"], "land": ["NL"] * 3})
        >>> encoding = TableEncoding.learn(frame)
        >>> encoding.features
        ['rooms', 'rooms is missing', 'town=Delft', 'town=Gouda']
        >>> encoding.encode(frame).x[1].tolist(), encoding.left_out
        ([4.0, 0.0, 0.0, 1.0], (('land', 'has one value alone'),))
        """
        learned = {str(name): learn_column(cells) for name, cells in check_table(frame).items()}
        return cls(
            tuple(column for column in learned.values() if isinstance(column, Column)),
            tuple((name, why) for name, why in learned.items() if isinstance(why, str)),
        )

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [feature for column in self.columns for feature in column.features]

    def encode(self, frame: Any) -> Encoded:
        """A table's rows, whose other columns are not looked at."""
        frame = check_table(frame)
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            shown = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
            raise OptionError(f"the table must have all columns that the model reads: it lacks {shown}")
        parts: list[NDArray[np.float64]] = []
        unknown: dict[str, dict[str, int]] = {}
        for column in self.columns:
            wide, found = column.encode(frame[column.name])
            parts.append(wide)
            if found:
                unknown[column.name] = found
        return Encoded(np.concatenate(parts, axis=1), unknown)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "columns": [column.as_dict() for column in self.columns],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TableEncoding:
        """What `as_dict` described."""
        columns, left_out = values.get("columns"), values.get("left_out")
        if not isinstance(columns, Sequence) or not isinstance(left_out, Sequence):
            raise FormatError("the columns of a table must be a list: got none")
        return cls(
            tuple(Column.from_dict(dict(each)) for each in columns),
            tuple((str(each["name"]), str(each["why"])) for each in left_out),
        )
