"""Models of a user's own table: reading it, encoding its columns, predicting its rows. Needs the extra `tables`."""

from .encoding import TableEncoding
from .model import TableModel, UnknownCellsWarning, load_table_model
from .reading import read_table

__all__ = ["TableEncoding", "TableModel", "UnknownCellsWarning", "load_table_model", "read_table"]
