"""`dendritree compare tables`: default estimators against MLPs and gradient boosting, on 47 tables."""

from .families import FAMILIES
from .plan import TablesPlan
from .report import print_tables, read_half, write_tables
from .run import compare_tables
from .tables import TABLES, Table, half_of

__all__ = [
    "FAMILIES",
    "TABLES",
    "Table",
    "TablesPlan",
    "compare_tables",
    "half_of",
    "print_tables",
    "read_half",
    "write_tables",
]
