"""Tables with named columns: reading a file, the schema of its cells, encoding its columns, splitting its rows."""

from .deciding import decide_schema, read_table
from .encoding import TableEncoding
from .schema import TableSchema

__all__ = ["TableEncoding", "TableSchema", "decide_schema", "read_table"]
