"""Reports of a run: what was found, as data first, then on a terminal, as Markdown, CSV files and one HTML page."""

from .files import ReportFiles, write_report
from .layout import Report
from .terminal import print_report

__all__ = ["Report", "ReportFiles", "print_report", "write_report"]
