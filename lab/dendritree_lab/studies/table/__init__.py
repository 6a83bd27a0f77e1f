"""`dendritree fit`: a model for a user's own table, and whether dendrites help there."""

from .contributions import column_effects, column_importances, explain_rows
from .controls import FamilyScores, compare_families
from .recommendation import best_family, verdict
from .table_fit import TableFit, fit_table
from .table_sections import table_report

__all__ = [
    "FamilyScores",
    "TableFit",
    "best_family",
    "column_effects",
    "column_importances",
    "compare_families",
    "explain_rows",
    "fit_table",
    "table_report",
    "verdict",
]
