"""The fair comparison: data sets x parameter budgets x model families under one rule."""

from .families import FAMILIES, Choice, Family
from .plan import Cell, ComparisonPlan
from .results import CellResult, Comparison, Efficiency, Gain, summarise
from .rivals import ALL_FAMILIES, RIVALS
from .run import compare
from .tasks import TASKS, Task

__all__ = [
    "ALL_FAMILIES",
    "FAMILIES",
    "RIVALS",
    "TASKS",
    "Cell",
    "CellResult",
    "Choice",
    "Comparison",
    "ComparisonPlan",
    "Efficiency",
    "Family",
    "Gain",
    "Task",
    "compare",
    "summarise",
]
