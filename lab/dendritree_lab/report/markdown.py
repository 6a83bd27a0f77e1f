"""The report as Markdown, readable both as source and rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from .layout import Report, Section, show


def markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report as one Markdown text.

    Args:
        report: the report.
        pictures: paths of the charts' pictures, by the chart's name; charts without one are omitted.

    >>> from .layout import Column, Group
    >>> columns = (Column("model", "model"), Column("trials", "trials", "count"))
    >>> section = Section("runs", "Runs", "All of them.", columns, (Group("a", "", (("MLP h=11", 10),)),))
    >>> print(markdown(Report("Report", ("One sentence.",), (section,))))
    # Report
    <BLANKLINE>
    - One sentence.
    <BLANKLINE>
    ## Runs
    <BLANKLINE>
    All of them.
    <BLANKLINE>
    | model    | trials |
    |:---------|-------:|
    | MLP h=11 |     10 |
    <BLANKLINE>
    """
    blocks = [f"# {report.title}"]
    if report.summary:
        blocks.append("\n".join(f"- {_escape(sentence)}" for sentence in report.summary))
    for section in report.sections:
        blocks += _section(section, pictures or {})
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"## {section.title}"
    if section.text:
        yield section.text
    for title, charts in groupby((chart for chart in section.charts if chart.name in pictures), lambda of: of.group):
        if title:
            yield f"### {title}"
        for chart in charts:
            yield f"**{_escape(chart.title)}**"
            yield f"![{_escape(chart.alt)}]({pictures[chart.name]})"
    if not any(section.rows):
        yield f"*{section.empty}*"
    for group in section.groups:
        if group.title:
            yield f"### {group.title}"
        yield _table(section, group.rows)
        yield from _evidence(section, group.rows)


def _evidence(section: Section, rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Texts that are too long for a table, as a list below it."""
    for place, column in section.shown:
        told = [row for row in rows if column.form == "evidence" and row[place]]
        if told:
            yield "\n".join(f"- {_escape(str(row[0]))}: {_escape(str(row[place]))}" for row in told)


def _table(section: Section, rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, padded so that the source is readable as a table too."""
    columns = [column for _, column in section.shown]
    cells = [[column.label for column in columns]]
    cells += [[_escape(show(row[place], column)) for place, column in section.shown] for row in rows]
    widths = [max(3, *(len(line[place]) for line in cells)) for place in range(len(columns))]
    sides = [">" if column.numeric else "<" for column in columns]
    lines = [
        " | ".join(f"{text:{side}{width}}" for text, side, width in zip(line, sides, widths, strict=True))
        for line in cells
    ]
    rules = [
        "-" * (width + 1) + ":" if side == ">" else ":" + "-" * (width + 1)
        for side, width in zip(sides, widths, strict=True)
    ]
    return "\n".join([f"| {lines[0]} |", f"|{'|'.join(rules)}|", *(f"| {line} |" for line in lines[1:])])


def _escape(text: str) -> str:
    """Escape characters that Markdown would interpret as columns, emphasis or tags; code between backticks stays.

    >>> print(_escape("a_b in `model = create_model(...)`"))
    a\\_b in `model = create_model(...)`
    """
    special = r"(`[^`]+`)|[\\|*_`\[]|<(?=[A-Za-z/!?])"
    return re.sub(special, lambda found: found[1] or f"\\{found[0]}", text).replace("\n", " ")
