"""Tables from files: CSV with any common separator, or Parquet."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError, MissingDataError, OptionError, nearest

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
SEPARATORS = ",;\t|"
HEAD = 100_000
"""Characters at the beginning of a file that are used to find the separator."""
QUOTED = re.compile(r'(?<![^\s,;|])"(?:[^"]|"")*"')
"""A quoted cell: the quote opens at the beginning of a cell, and quotes inside are doubled."""
DECIMAL_COMMA = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+"
WITH_COMMAS = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?$"
"""A number with a decimal comma, and optionally points as thousands separators."""
UNKNOWN = ["?"]
"""Read as missing, in addition to what pandas reads as missing: an empty cell, NA, NaN, null and the like."""


def read_table(path: str | os.PathLike[str], *, verbatim: bool = False) -> Any:
    """The rows of a CSV or Parquet file as a pandas data frame.

    Args:
        path: the file.
        verbatim: leave the cells of a CSV file as the text they are, with nothing missing.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = file.write_text("rooms;town\\n3;Delft\\n?;Gouda\\n")
    >>> read_table(file)["rooms"].isna().tolist()
    [False, True]
    """
    import pandas

    file = Path(path)
    if not file.exists():
        near = nearest(file.name, [each.name for each in file.parent.glob("*")])
        hint = f"; did you mean {near}?" if near else ""
        raise MissingDataError(f"the table {file} does not exist{hint}")
    if not file.is_file():
        raise OptionError(f"a table must be one file: {file} is not a regular file")
    ending = Path(file.name.removesuffix(".gz")).suffix.lower()
    if ending not in (*PARQUET_ENDINGS, *TEXT_ENDINGS):
        raise OptionError(f"a table must end in .csv, .tsv, .txt or .parquet: got {file.name}")
    try:
        frame = check_table(pandas.read_parquet(file) if ending in PARQUET_ENDINGS else _read_text(file, verbatim))
    except pandas.errors.EmptyDataError:
        raise FormatError(f"a table must have a line of column names and rows: {file} is empty") from None
    except Exception as error:  # pandas, pyarrow, gzip and zlib raise different errors for a file that is not a table
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise FormatError(f"{file} could not be read as a table: {reason:.200}") from None
    if not len(frame):
        raise FormatError(f"a table must have rows: {file} has only column names")
    return frame.reset_index(drop=True)


def _read_text(file: Path, verbatim: bool) -> Any:
    import pandas

    options: dict[str, Any] = {"skipinitialspace": True, "low_memory": False}
    options |= {"dtype": str, "keep_default_na": False} if verbatim else {"na_values": UNKNOWN}
    for encoding in ("utf-8-sig", "cp1252", "latin-1"):  # the last one reads anything
        with contextlib.suppress(UnicodeDecodeError):
            separator = _separator(file, encoding)
            _check_names(file, {"sep": separator, "encoding": encoding, **options})
            with warnings.catch_warnings():
                warnings.simplefilter("error", pandas.errors.ParserWarning)
                try:  # by default, pandas takes the first cells of longer rows for their names, and all columns shift
                    frame = pandas.read_csv(file, sep=separator, encoding=encoding, index_col=False, **options)
                except pandas.errors.ParserWarning:
                    raise FormatError("rows must have no more cells than there are column names") from None
            if separator != ";" or verbatim:
                return frame
            return frame.assign(**{name: _with_points(frame[name]) for name in frame})
    raise AssertionError("latin-1 reads any bytes")


def _check_names(file: Path, options: dict[str, Any]) -> None:
    """Raise for a name that occurs twice, which pandas would change."""
    import pandas

    names = pandas.read_csv(file, header=None, nrows=1, **{**options, "dtype": str}).iloc[0].dropna().str.strip()
    names = names[names != ""]
    if names.duplicated().any():
        raise FormatError(f"columns must have different names: {names[names.duplicated()].iloc[0]!r} occurs twice")


def _separator(file: Path, encoding: str) -> str:
    """The most frequent separator in the header, outside of quotes, which may contain separators and line ends."""
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding=encoding) as text:
        lines = QUOTED.sub("", text.read(HEAD)).split("\n")
    names = next((line for line in lines if line.strip()), "")
    return max(SEPARATORS, key=names.count)


def _with_points(cells: Any) -> Any:
    """Convert decimal commas to points in a column of a file with semicolons, which often has them."""
    import pandas

    if pandas.api.types.is_numeric_dtype(cells) or not cells.str.fullmatch(DECIMAL_COMMA).any():
        return cells
    texts = cells.str.replace(WITH_COMMAS, lambda cell: cell[0].replace(".", "").replace(",", "."), regex=True)
    try:
        return pandas.to_numeric(texts)
    except ValueError:  # a cell is not a number
        return texts


def check_table(frame: Any) -> Any:
    """A data frame whose column names are unique strings without surrounding spaces.

    >>> import pandas
    >>> list(check_table(pandas.DataFrame({0: [1.5], " town": ["Delft"]})).columns)
    ['0', 'town']
    """
    import pandas

    if not isinstance(frame, pandas.DataFrame):
        kind = f"{type(frame).__module__}.{type(frame).__name__}".removeprefix("builtins.")
        raise OptionError(f"a table must be a pandas data frame: got {kind}")
    named = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
    twice = named.columns[named.columns.duplicated()]
    if len(twice):
        raise OptionError(f"columns must have different names: {twice[0]!r} occurs twice")
    return named


def check_column(frame: Any, name: Any, what: str) -> str:
    """The name of a column of a checked table, or an error that suggests a similar name."""
    wanted = str(name).strip()
    if wanted in frame.columns:
        return wanted
    by_lower = {each.lower(): each for each in frame.columns}
    near = nearest(wanted.lower(), by_lower)
    hint = f"did you mean {by_lower[near]!r}?" if near else f"its columns are {first_few(list(frame.columns), 20)}"
    raise OptionError(f"{what} must be a column of the table: got {wanted!r:.60}; {hint}")


def first_few(texts: Sequence[str], most: int) -> str:
    """The first strings, with an ellipsis for those after `most`.

    >>> first_few(["Delft", "Gouda", "Leiden"], 2)
    'Delft, Gouda, ...'
    """
    return ", ".join([*texts[:most], "..."] if len(texts) > most else texts)
