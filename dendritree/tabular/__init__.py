"""A user's own table: read it, encode its columns, train a model and its controls. Needs the extra `tables`."""

from .controls import Difference, FamilyScores, compare_families, verdict
from .encoding import TableEncoding
from .model import TableFit, TableModel, fit_table, load_table_model
from .reading import read_table

__all__ = [
    "Difference",
    "FamilyScores",
    "TableEncoding",
    "TableFit",
    "TableModel",
    "compare_families",
    "fit_table",
    "load_table_model",
    "read_table",
    "verdict",
]
