"""`dendritree compare`: data sets x parameter budgets x model families under one fair rule."""

from .advice import Answer, answers
from .comparison import compare
from .comparison_plan import BUDGETS, ComparisonPlan
from .comparison_report import comparison_report, print_comparison, write_comparison
from .comparison_results import CellResult, Comparison, Efficiency, Gain, summarize
from .comparison_trials import Cell
from .families import FAMILIES, FOR_IMAGES, OURS, Family

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
