"""The report of a reproduction: the paper's tables next to ours."""

from .tables import build_report, report_of_run

__all__ = ["build_report", "report_of_run"]
