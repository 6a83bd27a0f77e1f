"""The report on disk: Markdown, one HTML page, CSV files, and pictures where the Markdown is to show them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..folders import files_together, reserved
from .csvs import csv_files
from .figures import draw_png
from .html import html_page
from .layout import Report
from .markdown import markdown
from .palette import looks

WHAT = "a report"
PARTS = ("csv", "figures")
"""Folders in the folder of a report."""
MARK = 'id="what-this-says"'
"""In the page of every report, and what it is known by."""


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

    The files change together and each is whole at any time, so a reader may look while a run continues and rewrites the
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
    contents, target = report_contents(report, name=name, pictures=pictures), Path(folder)
    with reserved(target, WHAT) as place:
        ours = own_report_files(place, contents, name=name, title=report.title)
        with files_together(place, ours, WHAT) as fresh:
            put_contents(contents, fresh)
    in_folder = {part: tuple(target / file for file in contents if file.startswith(f"{part}/")) for part in PARTS}
    return ReportFiles(target / f"{name}.md", target / f"{name}.html", in_folder["csv"], in_folder["figures"])


def report_contents(report: Report, *, name: str = "report", pictures: bool = False) -> dict[str, bytes]:
    """The files that `write_report` writes, with the same arguments, by their names.

    >>> list(report_contents(Report("Report", (), ())))
    ['csv/chart-points.csv', 'report.md', 'report.html']
    """
    charts = [chart for section in report.sections for chart in section.charts]
    models = looks(charts)
    drawn = {chart.name: draw_png(chart, models) for chart in charts} if pictures else {}
    shown = {chart: f"figures/{chart}.png" for chart in drawn}
    contents = {f"csv/{file}": text.encode() for file, text in csv_files(report).items()}
    contents |= {shown[chart]: picture for chart, picture in drawn.items()}
    return contents | {f"{name}.md": markdown(report, shown).encode(), f"{name}.html": html_page(report).encode()}


def put_contents(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a report into a folder that exists."""
    for file, content in contents.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(content)


def own_report_files(
    folder: Path, names: Collection[str], *, name: str = "report", title: str | None = None
) -> Collection[str]:
    """Those of some files that a new report may replace: all where the page or the Markdown text is ours, else none.

    Args:
        folder: of the report.
        names: of the files.
        name: of the page and the Markdown text.
        title: of the report; a Markdown text with this title is ours, also without its page.

    >>> own_report_files(Path("nowhere"), ["report.md"])
    ()
    """
    page, text = (_read(folder / f"{name}.{ending}") for ending in ("html", "md"))
    return names if MARK in page or (title is not None and text.startswith(f"# {title}\n")) else ()


def _read(path: Path) -> str:
    """The text of a file; empty if there is none that can be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""  # a pipe would wait
    except OSError:
        return ""
