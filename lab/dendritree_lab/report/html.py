"""The report as one self-contained HTML page: it needs no network, no fonts, and no JavaScript to be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape
from importlib import resources
from itertools import groupby
from string import Template
from typing import Any

from .chart_images import WIDE, draw
from .layout import Group, Report, Section, mood, show
from .looks import Looks, looks

LONG_TABLE = 40
"""Number of rows above which a table is folded."""
MANY_COLUMNS = 13
"""Tables with more columns have smaller text, to fit a desktop screen."""
LONG_TEXT, LONG_NAME = 40, 20
"""Number of characters above which the text of a cell, or of the first cell of a row, is wrapped."""


def html_page(report: Report) -> str:
    """The whole report as one page.

    >>> page = html_page(Report("Report", ("One sentence.",), ()))
    >>> "<h1>Report</h1>" in page and "<li>One sentence.</li>" in page
    True
    """
    models = looks(chart for section in report.sections for chart in section.charts)
    links = "".join(f'<li><a href="#{part.name}">{escape(part.title)}</a></li>' for part in report.sections)
    facts = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for value, what in report.facts)
    sentences = "".join(f"<li>{_prose(sentence)}</li>" for sentence in report.summary)
    return Template(_resource("page.html")).substitute(
        title=escape(report.title),
        style=_resource("page.css"),
        script=_resource("page.js"),
        facts=f'<dl class="facts">{facts}</dl>' if facts else "",
        summary=f"<ul>{sentences}</ul>",
        contents=f"<ul>{links}</ul>",
        sections="\n".join(_section(section, models) for section in report.sections),
    )


def _resource(name: str) -> str:
    """The text of a file next to this one in the package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _prose(text: str) -> str:
    """Text in which code stands between backticks.

    >>> _prose("see `a < b`")
    'see <code>a &lt; b</code>'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _section(section: Section, models: Looks) -> str:
    parts = [f'<h2><a href="#{section.name}">{escape(section.title)}</a></h2>']
    if section.text:
        parts.append(f"<p>{_prose(section.text)}</p>")
    for title, group in groupby(section.charts, key=lambda chart: chart.group):
        if title:
            parts.append(f"<h3>{escape(title)}</h3>")
        parts.append('<div class="charts">')
        charts = list(group)
        for chart in charts:
            caption = f"<figcaption>{escape(chart.title)}</figcaption>"
            # A chart that stands alone has the full width of a desktop: the page shows the drawing that fits
            wide = draw(chart, models, WIDE) if len(charts) == 1 and not chart.square else ""
            parts.append(f'<figure id="{chart.name}">{caption}{draw(chart, models)}{wide}</figure>')
        parts.append("</div>")
    if any(section.rows):
        parts += [_table(section, group) for group in section.groups]
    else:
        parts.append(f'<p class="note">{escape(section.empty)}</p>')
    body = "\n".join(parts)
    return f'<section id="{section.name}">\n{body}\n</section>'


def _table(section: Section, group: Group) -> str:
    classes = {True: ' class="number"', False: ""}
    columns = [column for _, column in section.shown]
    head = "".join(f'<th scope="col"{classes[each.numeric]}>{escape(each.label)}</th>' for each in columns)
    rows = "".join(f"<tr>{''.join(_cells(section, row))}</tr>\n" for row in group.rows)
    title = f'<h3><a href="#{group.name}">{escape(group.title)}</a></h3>\n' if group.title else ""
    # A scrollable box must be reachable with the keyboard, and have a name.
    label = escape(group.title or section.title)
    size = ' class="many"' if len(columns) > MANY_COLUMNS else ""
    table = f"<table{size}><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    scroll = f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{table}</div>'
    folded = (bool(section.charts) and section.fold) or len(group.rows) > LONG_TABLE
    if folded:  # charts show it at a glance; the numbers are shown on demand
        summary = f"<summary>Numbers: {label} ({len(group.rows)} rows)</summary>"
        return f'<details id="{group.name}">{summary}\n{scroll}\n</details>'
    return f'<div id="{group.name}">\n{title}{scroll}\n</div>'


def _cells(section: Section, row: tuple[Any, ...]) -> Iterator[str]:
    for place, (source, column) in enumerate(section.shown):
        value, text = row[source], show(row[source], column)
        if place == 0:
            folds = ' class="long"' if len(text) > LONG_NAME else ""
            yield f'<th scope="row"{folds}>{escape(text)}</th>'
        elif column.form == "badge" and value is not None:
            yield f'<td><span class="badge {mood(value)}">{escape(text)}</span></td>'
        elif column.form == "evidence" and value and value.removesuffix(".") != text:
            yield f'<td class="long"><details><summary>{escape(text)}</summary>{escape(value)}</details></td>'
        elif column.numeric:
            yield f'<td class="number" data-value="{_sort_key(value)}">{escape(text)}</td>'
        else:
            folds = ' class="long"' if len(text) > LONG_TEXT else ""
            yield f"<td{folds}>{escape(text)}</td>"


def _sort_key(value: Any) -> str:
    """The number that a cell is sorted by; empty if there is none."""
    if isinstance(value, tuple):
        value = value[0]
    return "" if value is None or math.isnan(value) else repr(float(value))
