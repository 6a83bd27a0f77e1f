"""Reports of a run: what was found, as data first, then on a terminal, as Markdown, CSV files and one HTML page."""

from .files import ReportFiles, write_report
from .layout import Report
from .tables import build_report, report_of_run
from .terminal import print_report

__all__ = ["Report", "ReportFiles", "build_report", "print_report", "report_of_run", "write_report"]
