"""Reports of a run: the results as data, rendered on a terminal, as Markdown, CSV files and one HTML page."""

from .files import ReportFiles, write_report
from .layout import Report
from .terminal import print_report

__all__ = ["Report", "ReportFiles", "print_report", "write_report"]
