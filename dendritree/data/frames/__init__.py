"""A user's own table: reading it, encoding its columns, splitting it into parts. Needs the extra `tables`."""

from .encoding import TableEncoding
from .reading import read_table

__all__ = ["TableEncoding", "read_table"]
