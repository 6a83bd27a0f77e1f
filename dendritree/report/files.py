"""The report on disk: Markdown, one HTML page, and CSV files."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from ..errors import DendritreeError
from .csvs import csv_files
from .html import html_page
from .layout import Report
from .markdown import markdown

__all__ = ["ReportFiles", "write_report"]


@dataclass(frozen=True)
class ReportFiles:
    """Where `write_report` put the report."""

    markdown: Path
    html: Path
    csvs: tuple[Path, ...]


def write_report(report: Report, folder: str | os.PathLike[str]) -> ReportFiles:
    """Write `report.md`, `report.html` and `csv/` into `folder`, replacing an earlier report. Needs the extra `report`.

    Each file appears whole or not at all, so a reader may look while a run goes on and rewrites the report.

    Args:
        report: what `build_report` made.
        folder: where to, made if needed.

    >>> import tempfile
    >>> files = write_report(Report("Report", (), ()), tempfile.mkdtemp())
    >>> [path.name for path in (files.markdown, files.html, *files.csvs)]
    ['report.md', 'report.html', 'chart-points.csv']
    """
    target = Path(folder)
    texts = {"report.md": markdown(report), "report.html": html_page(report)}  # before anything is written
    tables = csv_files(report)
    try:
        (target / "csv").mkdir(parents=True, exist_ok=True)
        csvs = [_write(target / "csv" / name, text) for name, text in tables.items()]
        pages = {name: _write(target / name, text) for name, text in texts.items()}
    except OSError as error:
        raise DendritreeError(f"a report's folder must be writable: {target} ({error.strerror})") from None
    return ReportFiles(pages["report.md"], pages["report.html"], tuple(csvs))


def _write(path: Path, text: str) -> Path:
    """Under another name first, then renamed, which replaces the old file in one step."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with scratch.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return path
