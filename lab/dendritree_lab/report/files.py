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

PARTS = ("csv", "figures")
"""Subfolders of the folder of a report."""
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
    """Write `report.md`, `report.html` and `csv/` into `folder`, replacing an earlier report. Needs the extra `report`.

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
    contents, target = report_contents(report, name=name, pictures=pictures), Path(folder)
    check_report_target(target, name)
    for file, content in contents.items():
        write_whole(target / file, content, "a report")
    in_folder = {part: tuple(target / file for file in contents if file.startswith(f"{part}/")) for part in PARTS}
    return ReportFiles(target / f"{name}.md", target / f"{name}.html", in_folder["csv"], in_folder["figures"])


def report_contents(report: Report, *, name: str = "report", pictures: bool = False) -> dict[str, bytes]:
    """The contents of the files that `write_report` writes with the same arguments, by name.

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


def check_report_target(folder: Path, name: str = "report") -> None:
    """Reject a folder whose page is not one of ours: it would be replaced.

    >>> check_report_target(Path("nowhere"))
    """
    page = folder / f"{name}.html"
    if page.exists() and (not page.is_file() or MARK not in page.read_text(encoding="utf-8", errors="replace")):
        raise DendritreeError(f"{page} exists and is not a report of dendritree; move it, or write elsewhere")
