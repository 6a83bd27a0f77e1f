"""What a cell of a table means, given its text and the column's schema: a number, a day, or nothing."""

from __future__ import annotations

import datetime
import functools
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

ORDERS = ("year first", "day first", "month first")
MISSING = frozenset({"?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL"})
"""Texts of missing cells in a column of any type; empty cells are missing too."""
MISSING_NUMBERS = frozenset({
    "?", "na", "n/a", "n.a.", "n. a.", "n.v.", "#n/a", "<na>", "nan", "null", "nil", "none", "-", "--", "---",
    "\u2013", "\u2014",
    ".", "..", "...", "k.a.", "k. a.", "keine angabe", "unknown", "unbekannt", "missing", "fehlt", "not available",
    "not known", "no data", "#null!", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!", "#num!", "#zahl!",
})  # fmt: skip
"""Words for a missing number or date, in lower case."""
SPACES = " \u00a0\u2009\u202f'\u2019"
"""Thousands separators that have no other meaning in numbers."""
LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
UNIQUE_LEAST = 20
"""Number of rows above which a column that counts them, or has a different string in each, is of no use."""
EPOCH = datetime.date(1970, 1, 1).toordinal()
DAY = 86_400.0  # seconds
TIME = (
    r"(?:(?:T| +|, *)(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?(?: ?(?P<half>[AaPp][Mm]))?"
    r" ?(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
_DATES = {
    "year first": r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)",
    "day first": r"(?P<day>\d\d?)(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<year>\d{4}|\d\d)",
    "month first": r"(?P<month>\d\d?)(?P<mark>[-/.])(?P<day>\d\d?)(?P=mark)(?P<year>\d{4}|\d\d)",
}
DATES = {order: re.compile(pattern + TIME, re.ASCII) for order, pattern in _DATES.items()}
SHORT_YEARS = 69
"""Years of two digits are 1969 to 2068, as in POSIX."""


@functools.lru_cache
def _number(decimal: str, thousands: str) -> re.Pattern[str]:
    point, marks = re.escape(decimal), re.escape(thousands + SPACES)
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>[{marks}])\d{{3}}(?:(?P=mark)\d{{3}})*"
    return re.compile(rf"[+-]?(?:(?:{grouped}|\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def number_of(text: str, decimal: str = ".", thousands: str = ",") -> float:
    """The number that a text denotes, or NaN. Spaces and apostrophes may also separate thousands.

    >>> number_of("1,234.5"), number_of("1.234,5", decimal=",", thousands="."), number_of("0,138"), number_of("1_000")
    (1234.5, 1234.5, nan, nan)
    """
    text = text.replace("\u2212", "-")  # the minus sign of typesetters
    if text.isascii() and text.isdigit():
        return float(text)
    match = _number(decimal, thousands).fullmatch(text)
    if match is None:
        return math.nan
    mark = match["mark"]
    number = float((text.replace(mark, "") if mark else text).replace(decimal, "."))
    return number if math.isfinite(number) else math.nan


def days_of(text: str, order: str) -> float:
    """Days since 1970 for a date with or without a time; NaN if the text is not a date.

    Infinity for dates that mean "never", in the years 1 and 9999. A time with a zone is converted to UTC.

    >>> days_of("2.1.1970", "day first"), days_of("1970-01-01 12:00", "year first"), days_of("13/13/2025", "day first")
    (1.0, 0.5, nan)
    """
    match = DATES[order].fullmatch(text)
    if match is None:
        return math.nan
    part = match.groupdict()
    if len(part["year"]) == 2:
        if len(part["day"]) < 2 or len(part["month"]) < 2:  # more likely a version, such as 1.2.25
            return math.nan
        part["year"] = f"{'19' if int(part['year']) >= SHORT_YEARS else '20'}{part['year']}"
    try:
        day = datetime.date(int(part["year"]), int(part["month"]), int(part["day"])).toordinal() - EPOCH
        return math.inf if part["year"] in ("0001", "9999") else day + _seconds(part) / DAY
    except ValueError:
        return math.nan


def _seconds(part: dict[str, Any]) -> float:
    """Seconds since midnight, in UTC."""
    if part["hour"] is None:
        return 0.0
    hour = int(part["hour"])
    if part["half"]:
        hour = hour % 12 + 12 * (part["half"].lower() == "pm") if 1 <= hour <= 12 else 24
    second = float((part["second"] or "0").replace(",", "."))
    whole = datetime.time(hour, int(part["minute"]), int(second))  # raises for 25:00
    seconds = 3600.0 * whole.hour + 60 * whole.minute + second
    if part["zone"] and part["zone"][0] in "+-":
        digits = part["zone"][1:].replace(":", "").ljust(4, "0")
        offset = 3600 * int(digits[:2]) + 60 * int(digits[2:])
        seconds -= offset if part["zone"][0] == "+" else -offset
    return seconds


def as_text(cells: Any, decimal: str = ".") -> Any:
    """Cells as strings without surrounding spaces; empty and missing ones are None. 7.0 is "7" in any column.

    Args:
        cells: a column.
        decimal: the decimal mark of cells that are numbers already.
    """

    def text(cell: Any) -> str | None:
        if isinstance(cell, float):
            return str(int(cell)) if cell.is_integer() else str(cell).replace(".", decimal)
        return str(cell).strip() or None

    return cells.astype(object).map(text, na_action="ignore")


def as_numbers(cells: Any) -> NDArray[np.float64]:
    """Numbers or dates, as read by the schema, as numbers: dates as days since 1970; NaN where missing."""
    values = cells.to_numpy()
    if values.dtype.kind != "M":
        return np.asarray(values, np.float64)
    return np.where(np.isnat(values), np.nan, values.astype("datetime64[ms]").astype(np.int64) / (1000 * DAY))


def counts_rows(cells: Any) -> bool:
    """Whether each number or date of a column, as read by the schema, is the one before plus 1.

    >>> import pandas
    >>> counts_rows(pandas.Series(range(70_001, 70_100))), counts_rows(pandas.Series([1.5, 2.5, 3.5]))
    (True, False)
    """
    if hasattr(cells, "cat") or len(cells) <= UNIQUE_LEAST:
        return False
    numbers = as_numbers(cells)
    return bool((numbers[1:] == numbers[:-1] + 1).all())
