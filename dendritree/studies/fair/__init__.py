"""`dendritree compare`: data sets x parameter budgets x model families under one fair rule."""

from .answer import Answer, answers
from .families import FAMILIES, FOR_IMAGES, OURS, Family
from .plan import BUDGETS, ComparisonPlan
from .report import comparison_report, print_comparison, write_comparison
from .results import CellResult, Comparison, Efficiency, Gain, summarize
from .run import compare
from .trials import Cell

__all__ = [
    "BUDGETS",
    "FAMILIES",
    "FOR_IMAGES",
    "OURS",
    "Answer",
    "Cell",
    "CellResult",
    "Comparison",
    "ComparisonPlan",
    "Efficiency",
    "Family",
    "Gain",
    "answers",
    "compare",
    "comparison_report",
    "print_comparison",
    "summarize",
    "write_comparison",
]
