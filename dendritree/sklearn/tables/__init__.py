"""Models of a user's own table: read it, encode its columns, predict its rows. Needs the extra `tables`."""

from .encoding import TableEncoding
from .model import TableModel, load_table_model
from .reading import read_table

__all__ = ["TableEncoding", "TableModel", "load_table_model", "read_table"]
