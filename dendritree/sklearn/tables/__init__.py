"""Models of a user's own table: predicting its rows. Needs the extra `tables`."""

from ...data.frames import TableEncoding, read_table
from .model import TableModel, UnknownCellsWarning, load_table_model

__all__ = ["TableEncoding", "TableModel", "UnknownCellsWarning", "load_table_model", "read_table"]
