"""The report of `dendritree compare`: what was found, on a terminal, as one page, as Markdown and CSV files."""

from .writing import comparison_report, print_comparison, write_comparison

__all__ = ["comparison_report", "print_comparison", "write_comparison"]
