"""The report as CSV files, one per section, with all digits; and one with every point of the charts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from .layout import PARTS, Column, Report, Section

POINTS_HEADER = ("chart", "panel", "model", "curve", "x", "y", "low", "high")


def csv_files(report: Report) -> dict[str, str]:
    """The text of each file by its name. The names are the same for every report, including a partial one.

    >>> from .layout import Group
    >>> section = Section("runs", "Runs", "", (Column("trials", "trials", "count"),), (Group("a", "A", ((10,),)),))
    >>> csv_files(Report("Report", (), (section,)))["runs.csv"]
    'trials\\n10\\n'
    """
    files = {f"{section.name}.csv": section_csv(section) for section in report.sections}
    points = [
        (chart.name, panel.y_label, line.label, "training" if line.faint else "", *point)
        for section in report.sections
        for chart in section.charts
        for panel in chart.panels
        for line in panel.lines
        for point in zip_longest(line.x, line.y, line.low, line.high)
    ]
    return {**files, "chart-points.csv": _text(POINTS_HEADER, points)}


def section_csv(section: Section) -> str:
    """A section's table: a value with parts, such as a mean with its standard deviation, has a column for each part.

    >>> from .layout import Group
    >>> table = Section("s", "S", "", (Column("acc", "acc", "spread"),), (Group("a", "A", (((0.5, 0.1),),)),))
    >>> section_csv(table)
    'acc,acc_sd\\n0.5,0.1\\n'
    """
    header = [column.name + part for column in section.columns for part in PARTS.get(column.form, ("",))]
    rows = (
        [part for column, value in zip(section.columns, row, strict=True) for part in _parts(column, value)]
        for row in section.rows
    )
    return _text(header, rows)


def _parts(column: Column, value: Any) -> list[Any]:
    if column.form not in PARTS:
        return [value]
    return [None] * len(PARTS[column.form]) if value is None else list(value)


def _text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV text: floats have all digits, so that they round-trip; absent values are empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
