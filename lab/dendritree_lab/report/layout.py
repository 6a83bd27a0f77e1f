"""The structure of a report: sections, each with one table and some charts. Data only; renderers display it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from dendritree.errors import check_one_of

from .chart import Chart

ABSENT = "\N{EN DASH}"
"""Shown for absent values."""
TEXTS = ("text", "badge", "evidence")
NUMBERS = ("count", "number", "difference", "p", "seconds", "ratio", "bounded", "spread", "interval")
FORMS = (*TEXTS, *NUMBERS)
"""How the values of a column are shown. `evidence` is text that is shortened to the part before the first colon."""


BADGES = {
    "good": ("holds", "within", "inside", "ahead", "complete"),
    "bad": ("does not hold", "outside", "behind"),
    "open": ("undecided", "partial", "differs"),
}
"""Words for verdicts and states, by mood; all other words are plain."""

PARTS = {"spread": ("", "_sd"), "interval": ("_low", "_high"), "bounded": ("", "_bound")}
"""For forms whose values are pairs, the suffixes of the column names in CSV files."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    """Its header in CSV files."""
    label: str = ""
    """Its header in tables; empty if only CSV files have the column, because the group's title states it."""
    form: str = "text"
    """One of `FORMS`; a spread is a pair of mean and sample standard deviation, an interval a pair of its ends, and
    bounded a ratio with `>` or `<` if it is only a bound."""
    digits: int = 3
    """Decimal places, if the form has any."""
    detail: bool = False
    """Whether it is omitted if there is not enough room, as on a narrow terminal."""
    value: str | Callable[[Any], Any] = ""
    """How to get the value from the item of a row: a function, or attributes such as `row.model`; by default its name.

    For a mapping it is a key, which may be absent.
    """

    def __post_init__(self) -> None:
        check_one_of("form", self.form, FORMS)

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, which are right-aligned.

        >>> Column("trials", "trials", "count").numeric
        True
        """
        return self.form in NUMBERS

    def read(self, item: Any) -> Any:
        """The column's value for the item of a row.

        >>> Column("real", "real part").read(3 + 4j), Column("size", value=abs).read(3 + 4j)
        (3.0, 5.0)
        """
        if callable(self.value):
            return self.value(item)
        name = self.value or self.name
        return item.get(name) if isinstance(item, Mapping) else attrgetter(name)(item)


@dataclass(frozen=True)
class Group:
    """Rows of a table that belong together under a title, such as one table of the paper."""

    name: str
    """The anchor in the page, unique in the report."""
    title: str
    rows: tuple[tuple[Any, ...], ...]
    """One value per column; None if absent."""


@dataclass(frozen=True)
class Section:
    """A section of the report: a sentence or two, a table in groups, and charts; without rows, a short message."""

    name: str
    """The anchor in the page and the name of the CSV file."""
    title: str
    text: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...] = ()
    charts: tuple[Chart, ...] = ()
    empty: str = "Nothing to show yet."
    """Shown instead of a table without rows."""
    fold: bool = True
    """Whether a page shows the table only on demand if there are charts."""
    brief: bool = True
    """Whether a short report, as on a terminal, includes the section."""

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        text: str,
        columns: tuple[Column, ...],
        items: Iterable[Any],
        *,
        by: Callable[[Any], tuple[str, str]] = lambda _: ("table", ""),
        **options: Any,
    ) -> Section:
        """A section with one row per item, in groups.

        Args:
            name, title, text, columns: as in the class.
            items: the items of the rows, from which every column gets its value.
            by: returns the end of the anchor and the title of an item's group.
            options: further fields.

        >>> columns = (Column("real", "real"), Column("imag", "imaginary"))
        >>> list(Section.of("numbers", "Numbers", "", columns, [1j, 2 + 0j]).rows)
        [(0.0, 1.0), (2.0, 0.0)]
        """
        groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for item in items:
            groups.setdefault(by(item), []).append(tuple(column.read(item) for column in columns))
        made = (Group(anchor(f"{name}-{end}"), heading, tuple(rows)) for (end, heading), rows in groups.items())
        return cls(name, title, text, columns, tuple(made), **options)

    @property
    def shown(self) -> list[tuple[int, Column]]:
        """The columns that are shown in tables, with their indices in a row: those with a label and any value.

        >>> Section("speed", "Speed", "", (Column("task"), Column("seconds", "seconds", "seconds"))).shown[0][0]
        1
        >>> columns = (Column("real", "real"), Column("nothing", "nothing", value=lambda _: None))
        >>> [column.label for _, column in Section.of("numbers", "Numbers", "", columns, [1j]).shown]
        ['real']
        """
        labeled = [(place, column) for place, column in enumerate(self.columns) if column.label]
        rows = list(self.rows)
        return [each for each in labeled if not rows or any(row[each[0]] is not None for row in rows)]

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of all groups."""
        return (row for group in self.groups for row in group.rows)


@dataclass(frozen=True)
class Report:
    """The whole content of a report, before it is rendered; made by `build_report` and similar functions."""

    title: str
    summary: tuple[str, ...]
    """The findings, one or two sentences each, computed from the results."""
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    """The key figures at the top of the page: a value and what it counts."""

    def section(self, name: str) -> Section:
        """The section of that name.

        >>> section = Section("missing", "What is missing", "", (Column("task"),))
        >>> Report("Report", (), (section,)).section("missing").title
        'What is missing'
        """
        known = {section.name: section for section in self.sections}
        return known[check_one_of("section", name, known)]


def anchor(text: str) -> str:
    """Convert a text to an id in the page or a file name.

    >>> anchor("sizes-mnist:128")
    'sizes-mnist-128'
    """
    return re.sub(r"[^\w.-]+", "-", text)


def mood(word: Any) -> str:
    """The mood of a badge's word.

    >>> mood("ahead"), mood("one trial")
    ('good', 'plain')
    """
    return next((mood for mood, words in BADGES.items() if word in words), "plain")


def show(value: Any, column: Column) -> str:
    """Format a value for display.

    >>> show((0.7712, 0.0204), Column("val_acc", "val. accuracy", "spread", digits=2))
    '0.77 ± 0.02'
    >>> show(-0.0312, Column("difference", "difference", "difference"))
    '\N{MINUS SIGN}0.031'
    >>> show((12.4, ">"), Column("factor", "factor", "bounded"))
    '>\xa012\N{MULTIPLICATION SIGN}'
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    digits = column.digits
    match column.form:
        case "count":
            return f"{value:,}"
        case "number":
            return _fixed(value, digits)
        case "difference":
            return _fixed(value, digits, sign="+")
        case "p":
            return "< 0.001" if value < 0.001 else f"{value:.3f}"
        case "seconds":
            return show_seconds(value)
        case "ratio":
            return f"{value:,.0f}\N{MULTIPLICATION SIGN}" if value >= 10 else f"{value:.1f}\N{MULTIPLICATION SIGN}"
        case "bounded":
            return f"{value[1]}\N{NO-BREAK SPACE}{show(value[0], replace(column, form='ratio'))}".strip()
        case "spread":
            mean, sd = (ABSENT if math.isnan(part) else _fixed(part, digits) for part in value)
            return ABSENT if mean == ABSENT else f"{mean} ± {sd}"
        case "interval":
            return ABSENT if any(map(math.isnan, value)) else " to ".join(_fixed(end, digits) for end in value)
        case "evidence":
            return str(value).partition(":")[0].removesuffix(".")
        case _:
            return str(value)


def unit_digits(size: float) -> int:
    """Decimal places that show about four significant digits of a number of this size.

    >>> unit_digits(21.5), unit_digits(0.012), unit_digits(40_000.0)
    (2, 5, 0)
    """
    return min(max(3 - math.floor(math.log10(max(abs(size), 1e-12))), 0), 9)


def four_digits(value: float) -> str:
    """A number with about four significant digits and thousands separators.

    >>> four_digits(40969.7), four_digits(-0.01234)
    ('40,970', '-0.01234')
    """
    return f"{value:,.{unit_digits(value)}f}"


def show_seconds(seconds: float) -> str:
    """Format a duration in a suitable unit.

    >>> [show_seconds(value) for value in (0.0123, 4.2, 245.0, 8130.0)]
    ['12 ms', '4.2 s', '4 min 5 s', '2 h 16 min']
    """
    if not math.isfinite(seconds):
        return ABSENT
    if seconds < 1:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def listed(words: Sequence[str]) -> str:
    """Join words into a list for a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _fixed(value: float, digits: int, sign: str = "-") -> str:
    """A number with a true minus sign, which is as wide as a plus, and no sign before a zero."""
    text = f"{value:{sign},.{digits}f}"
    if not text.strip("+-0."):
        text = f"{0.0:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")
