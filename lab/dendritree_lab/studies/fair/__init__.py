"""`dendritree compare`: data sets x parameter budgets x model families under one fair rule."""

from .advice import answers
from .comparison import compare
from .comparison_plan import ComparisonCell, ComparisonPlan
from .comparison_report import print_comparison, write_comparison
from .comparison_results import Comparison, summarize
from .families import FAMILIES

__all__ = [
    "FAMILIES",
    "Comparison",
    "ComparisonCell",
    "ComparisonPlan",
    "answers",
    "compare",
    "print_comparison",
    "summarize",
    "write_comparison",
]
