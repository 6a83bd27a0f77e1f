"""The report on disk: Markdown, one HTML page, CSV files, and optionally pictures for the Markdown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dendritree.errors import DendritreeError
from dendritree.files import write_whole

from .chart_images import draw_png
from .csvs import csv_files
from .html import html_page
from .layout import Report
from .looks import looks
from .markdown import markdown

MARK = 'id="what-this-says"'
"""Occurs in the page of every report, and identifies it."""


@dataclass(frozen=True)
class ReportFiles:
    """The paths of the files that `write_report` wrote."""

    markdown: Path
    html: Path
    csvs: tuple[Path, ...]
    pictures: tuple[Path, ...] = ()

    @property
    def places(self) -> list[Path]:
        """Where everything is: the page, the Markdown text, and the folders of the other files."""
        return [self.html, self.markdown, *sorted({path.parent for path in (*self.csvs, *self.pictures)})]


def write_report(
    report: Report, folder: str | os.PathLike[str], *, name: str = "report", pictures: bool = False
) -> ReportFiles:
    """Write `report.md`, `report.html` and `csv/` into `folder`, replacing an earlier report.

    Each file is complete at any time. A page that is not an earlier report raises an error.

    Args:
        report: the report, for example from `build_report`.
        folder: where to write, created if necessary.
        name: name of the page and of the Markdown file.
        pictures: also write every chart as `figures/NAME.png`, and show them in the Markdown text.

    >>> import tempfile
    >>> files = write_report(Report("Report", (), ()), tempfile.mkdtemp())
    >>> [path.name for path in (files.markdown, files.html, *files.csvs)]
    ['report.md', 'report.html', 'chart-points.csv']
    """
    target = Path(folder)
    check_report_target(target, name)
    charts = [chart for section in report.sections for chart in section.charts]
    models = looks(charts)
    drawn = {f"figures/{chart.name}.png": draw_png(chart, models) for chart in charts} if pictures else {}
    text, page = markdown(report, {Path(file).stem: file for file in drawn}), html_page(report)
    csvs = {f"csv/{file}": content for file, content in csv_files(report).items()}
    contents: dict[str, str | bytes] = {**csvs, **drawn, f"{name}.md": text, f"{name}.html": page}
    for file, content in contents.items():
        write_whole(target / file, content, "a report")
    csv_paths, picture_paths = (tuple(target / file for file in files) for files in (csvs, drawn))
    return ReportFiles(target / f"{name}.md", target / f"{name}.html", csv_paths, picture_paths)


def check_report_target(folder: Path, name: str = "report") -> None:
    """Reject a folder whose page is not one of ours: it would be replaced.

    >>> check_report_target(Path("nowhere"))
    """
    page = folder / f"{name}.html"
    if page.exists() and (not page.is_file() or MARK not in page.read_text(encoding="utf-8", errors="replace")):
        raise DendritreeError(f"{page} exists and is not a report of dendritree; move it, or write elsewhere")
