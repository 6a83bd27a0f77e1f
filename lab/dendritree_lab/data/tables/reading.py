"""Tables from CSV files with any common separator, or Parquet: the cells as stored, and the format of the file."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError, MissingDataError, OptionError, nearest

from .schema import TableSchema, check_encoding

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
SEPARATORS = "\t;|,"
"""A comma comes last: it also occurs in texts and numbers."""
HEAD = 100_000
"""Characters at the beginning of a file that are used to find the separator."""
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table in a file."""

    frame: Any
    """Its cells; those of a text file are strings."""
    separator: str | None = None
    """None for Parquet."""
    encoding: str = "utf-8"
    newline: str = "\n"
    announced: bool = False
    """Whether the file begins with a line like `sep=;`, as Excel's do."""

    def to_bytes(self, frame: Any, *, decimal: str = ".") -> bytes:
        """Another table in the format of this one, with a decimal mark."""
        separator = self.separator or ","
        text = frame.to_csv(index=False, sep=separator, decimal=decimal, lineterminator=self.newline, na_rep="")
        first = f"sep={separator}{self.newline}" if self.announced else ""
        return f"{first}{text}".encode(self.encoding)


def read_file(path: str | os.PathLike[str], *, separator: str | None = None, encoding: str | None = None) -> TableFile:
    """The cells of a CSV or Parquet file.

    Args:
        path: the file.
        separator: separator of the cells in a line; detected by default.
        encoding: encoding of the text; detected by default.
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
        if ending in PARQUET_ENDINGS:
            table = TableFile(pandas.read_parquet(file).reset_index(drop=True))
        else:
            content = file.read_bytes()
            table = _read_text(gzip.decompress(content) if file.suffix == ".gz" else content, separator, encoding)
        check_table(table.frame)
    except pandas.errors.EmptyDataError:
        raise FormatError(f"a table must have a line of column names and rows: {file} is empty") from None
    except Exception as error:  # pandas, pyarrow, gzip and zlib raise different errors for a file that is not a table
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise FormatError(f"{file} could not be read as a table: {reason:.300}") from None
    if not len(table.frame):
        raise FormatError(f"a table must have rows: {file} has only column names")
    return table


def read_like(path: str | os.PathLike[str], schema: TableSchema, needed: Sequence[str]) -> TableFile:
    """The cells of another file of a table, read by its schema; raises if a needed column is missing."""

    def has_all(file: TableFile) -> bool:
        return set(needed) <= set(check_table(file.frame).columns)

    try:
        table, wrong = read_file(path, separator=schema.separator, encoding=schema.encoding), None
        if has_all(table) or schema.separator is None or table.separator is None:
            return table
    except FormatError as error:
        wrong = error
    with contextlib.suppress(FormatError):
        other = read_file(path, encoding=schema.encoding)
        if other.separator != schema.separator and has_all(other):
            raise OptionError(
                f"{path} must be written like the training table, with separator {schema.separator!r} and decimal "
                f"{schema.decimal!r}: its separator is {other.separator!r}; to read it, give --schema a JSON file with "
                'the "separator" and the "decimal" mark of the new file'
            )
    if wrong is not None:
        raise wrong
    return table


# -------------------------------------------------------------------------------------------------------------- text


def _read_text(content: bytes, separator: str | None, encoding: str | None) -> TableFile:
    import pandas

    encoding = find_encoding(content) if encoding is None else _checked_encoding(content, check_encoding(encoding))
    text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    newline = next((end for end in ("\r\n", "\n", "\r") if end in text[:HEAD]), "\n")
    first, _, rest = text.lstrip().partition(newline)
    announced = first.lower().startswith("sep=") and len(first.rstrip()) <= len("sep=;")
    if announced:
        text, separator = rest, separator or first[4:5] or "\t"
    separator = separator or find_separator(text)
    options = {"sep": separator, "dtype": str, "keep_default_na": False, "na_values": [""], "skipinitialspace": True}
    names = pandas.read_csv(io.StringIO(text), header=None, nrows=1, **options).iloc[0].dropna().str.strip()
    names = names[names != ""]
    if names.duplicated().any():  # pandas would rename it
        raise FormatError(f"columns must have different names: {names[names.duplicated()].iloc[0]!r} occurs twice")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:  # by default, pandas takes the first cells of longer rows for their names, and all columns shift
            frame = pandas.read_csv(io.StringIO(text), index_col=False, low_memory=False, **options)
        except pandas.errors.ParserWarning:
            raise FormatError("rows must have no more cells than there are column names") from None
    return TableFile(frame.fillna(""), separator, encoding, newline, announced)


def find_encoding(content: bytes) -> str:
    """The encoding of a text: by its byte order mark, or UTF-8, or that of Windows in Western Europe.

    >>> find_encoding("Köln".encode()), find_encoding("Köln".encode("cp1252")), find_encoding("Köln".encode("utf-16"))
    ('utf-8', 'cp1252', 'utf-16')
    """
    for mark, name in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return name
    zeros = content[:HEAD:2].count(0), content[1:HEAD:2].count(0)
    if max(zeros) > len(content[:HEAD]) / 8:  # every second byte of a Western text in UTF-16
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    for name in ("utf-8", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            content.decode(name)
            return name
    return "latin-1"  # reads any bytes


def _checked_encoding(content: bytes, encoding: str) -> str:
    """The encoding of the schema; raises if the text is not in it."""
    found = find_encoding(content)
    family = found.removesuffix("-sig")
    if family != encoding.lower().removesuffix("-sig"):
        try:
            content.decode(encoding)
            wrong = not content.isascii() and family[:4] == "utf-"
        except UnicodeError:
            wrong = True
        if wrong:
            raise FormatError(f"the encoding must be {encoding}, as the schema says: the file seems to be {found}")
    return encoding


def find_separator(text: str) -> str:
    """The separator that gives every line as many cells as the header has, or the most frequent one in the header.

    >>> find_separator("price, EUR;area\\n1,5;20\\n")
    ';'
    """
    whole = text[:HEAD] if len(text) <= HEAD else text[:HEAD].rpartition("\n")[0]
    lines = whole.lstrip("\r\n").splitlines(keepends=True)
    widths = {}
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):
            rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
            widths[separator] = [len(row) for row in rows if row]
    for separator, found in widths.items():
        if found and found[0] > 1 and len(set(found)) == 1:
            return separator
    return max(SEPARATORS[::-1], key=lambda each: widths.get(each, [0])[:1])


# ------------------------------------------------------------------------------------------------------------ frames


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
