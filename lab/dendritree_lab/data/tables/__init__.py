"""Tables with named columns: reading a file, encoding its columns, splitting its rows."""

from .encoding import TableEncoding
from .reading import read_table

__all__ = ["TableEncoding", "read_table"]
