"""The report on disk: Markdown, one HTML page, CSV files, and pictures where the Markdown is to show them."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ..folders import files_together, reserved
from .csvs import csv_files
from .figures import draw_png
from .html import html_page
from .layout import Report
from .markdown import markdown
from .palette import looks

MARK = 'id="what-this-says"'
"""In the page of every report, and what its folder is known by."""


@dataclass(frozen=True)
class ReportFiles:
    """Where `write_report` put the report."""

    markdown: Path
    html: Path
    csvs: tuple[Path, ...]
    pictures: tuple[Path, ...] = ()


def write_report(
    report: Report, folder: str | os.PathLike[str], *, name: str = "report", pictures: bool = False
) -> ReportFiles:
    """Write `report.md`, `report.html` and `csv/` into `folder`, replacing an earlier report. Needs the extra `report`.

    The files change together and each is whole at any time, so a reader may look while a run goes on and rewrites the
    report. A file in the way that is not of an earlier report raises an error.

    Args:
        report: what `build_report` made.
        folder: where to, made if needed.
        name: of the page and the Markdown text.
        pictures: also write every chart as `figures/NAME.png`, and show them in the Markdown text.

    >>> import tempfile
    >>> files = write_report(Report("Report", (), ()), tempfile.mkdtemp())
    >>> [path.name for path in (files.markdown, files.html, *files.csvs)]
    ['report.md', 'report.html', 'chart-points.csv']
    """
    drawn = _pictures(report) if pictures else {}  # all is made before anything is written
    shown = {chart: f"figures/{chart}.png" for chart in drawn}
    csvs = {f"csv/{file}": text.encode() for file, text in csv_files(report).items()}
    page, text = f"{name}.html", f"{name}.md"
    contents = csvs | {shown[chart]: picture for chart, picture in drawn.items()}
    contents |= {text: markdown(report, shown).encode(), page: html_page(report).encode()}
    what, target = "a report", Path(folder)
    with reserved(target, what) as place, files_together(place, own_files(place, contents, name), what) as fresh:
        for file, content in contents.items():
            (fresh / file).parent.mkdir(exist_ok=True)
            (fresh / file).write_bytes(content)
    written = {file: target / file for file in contents}
    return ReportFiles(
        written[text],
        written[page],
        tuple(written[file] for file in csvs),
        tuple(written[file] for file in shown.values()),
    )


def own_files(folder: Path, names: Collection[str], name: str = "report") -> Collection[str]:
    """Those of some files that a new report may replace: all where the page is ours, none where it is not.

    >>> own_files(Path("nowhere"), ["report.md"])
    ()
    """
    try:
        page = (folder / f"{name}.html").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return names if MARK in page else ()


def _pictures(report: Report) -> dict[str, bytes]:
    charts = [chart for section in report.sections for chart in section.charts]
    models = looks(charts)
    return {chart.name: draw_png(chart, models) for chart in charts}
