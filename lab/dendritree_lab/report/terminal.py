"""The report on a terminal, in rich's tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .layout import Column, Group, Report, Section, mood, show

COLORS = {"good": "green", "bad": "red", "open": "yellow", "plain": ""}
"""Colors of badges by their mood; the word itself is always shown."""


def print_report(report: Report, console: Console | None = None, *, whole: bool = False) -> None:
    """Print the report to a rich console, by default the terminal; the summary comes last, where it stays visible.

    Args:
        report: the report, for example from `build_report`.
        console: a `rich.console.Console`. On a narrow one, tables omit columns of detail.
        whole: print every section, including the long ones.

    >>> from rich.console import Console
    >>> columns = (Column("model", "model"), Column("trials", "trials", "count"))
    >>> section = Section("runs", "Runs", "", columns, (Group("a", "", (("MLP h=11", 10),)),))
    >>> report = Report("Report", ("One sentence.",), (section,))
    >>> print_report(report, Console(width=60, force_terminal=False))  # doctest: +NORMALIZE_WHITESPACE
    Runs
    <BLANKLINE>
      model     trials
     ──────────────────
      MLP h=11      10
    <BLANKLINE>
    Report
    • One sentence.
    """
    out = Console() if console is None else console
    for section in report.sections:
        if whole or section.brief:
            out.print(Text(section.title, style="bold"))
            if not any(section.rows):
                out.print(Text(f"{section.empty}\n", style="dim"))
            for group in section.groups:
                out.print(_table(section, group, out))
    out.print(Text(report.title, style="bold"))
    for sentence in report.summary:
        out.print(Text(f"• {sentence}"))


def _table(section: Section, group: Group, out: Console) -> Table:
    """A table, without columns of detail if there is not enough room."""
    table = _rich_table(section.shown, group)
    if Measurement.get(out, out.options.update(width=10_000), table).maximum > out.width:
        return _rich_table([(place, column) for place, column in section.shown if not column.detail], group)
    return table


def _rich_table(shown: Sequence[tuple[int, Column]], group: Group) -> Table:
    title = Text(group.title, style="italic") if group.title else None
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True)
    for place, (_, column) in enumerate(shown):
        # Numbers and names of models are not wrapped; other text is, on a narrow terminal.
        whole = column.numeric or (place == 0 and any(other.numeric for _, other in shown))
        table.add_column(column.label, justify="right" if column.numeric else "left", no_wrap=whole, overflow="fold")
    for row in group.rows:
        cells = [(show(row[place], column), column.form) for place, column in shown]
        table.add_row(*(Text(cell, style=COLORS[mood(cell)] if form == "badge" else "") for cell, form in cells))
    return table
