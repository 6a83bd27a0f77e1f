"""`dendritree fit`: a model of a user's own table, and whether dendrites help there."""

from .controls import FamilyScores, compare_families, verdict
from .fit import TableFit, fit_table

__all__ = ["FamilyScores", "TableFit", "compare_families", "fit_table", "verdict"]
