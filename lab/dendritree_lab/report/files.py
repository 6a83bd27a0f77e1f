"""The report on disk: Markdown, one HTML page, CSV files, and optionally pictures for the Markdown."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from dendritree.folders import files_together, reserved
from .csvs import csv_files
from .chart_images import draw_png
from .html import html_page
from .layout import Report
from .markdown import markdown
from .looks import looks

WHAT = "a report"
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

    The files are replaced together and each is complete at any time, so the report can be read while a run continues to
    rewrite it. An existing file that is not part of an earlier report raises an error.

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
    with reserved(target, WHAT) as place:
        ours = own_report_files(place, contents, name=name, title=report.title)
        with files_together(place, ours, WHAT) as fresh:
            put_contents(contents, fresh)
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


def put_contents(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a report to an existing folder."""
    for file, content in contents.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(content)


def own_report_files(
    folder: Path, names: Collection[str], *, name: str = "report", title: str | None = None
) -> Collection[str]:
    """The files that a new report may replace: all if the page or the Markdown file is from a report, else none.

    Args:
        folder: folder of the report.
        names: names of the files.
        name: name of the page and of the Markdown file.
        title: title of the report; a Markdown file with this title is from a report, even without the page.

    >>> own_report_files(Path("nowhere"), ["report.md"])
    ()
    """
    page, text = (_read(folder / f"{name}.{ending}") for ending in ("html", "md"))
    return names if MARK in page or (title is not None and text.startswith(f"# {title}\n")) else ()


def _read(path: Path) -> str:
    """The text of a file; empty if there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""  # a pipe would block
    except OSError:
        return ""
