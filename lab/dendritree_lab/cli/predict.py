"""`dendritree predict`: the predictions of a model that `dendritree fit` wrote, for new rows."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from dendritree.errors import OptionError
from dendritree.files import write_whole

from .messages import tell
from .options import Arguments, Option


def run(arguments: Arguments) -> None:
    """Predict the rows of a table with a model that `fit` trained."""
    from ..data.tables.reading import read_table
    from ..studies.table.table_model import UnknownCellsWarning, load_table_model

    out = None if arguments.out is None else Path(arguments.out)
    table = Path(arguments.table)
    if out is not None and out.exists() and (not out.is_file() or (table.exists() and out.samefile(table))):
        raise OptionError(f"--out must be a file other than the table: got {out}")
    if out is not None and Path(arguments.model).resolve() in out.resolve().parents:
        raise OptionError(f"--out must be outside the folder of the model: got {out}")
    model = load_table_model(arguments.model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnknownCellsWarning)
        predicted = model.predict(read_table(arguments.table), strict=arguments.strict)
    for notice in caught:
        tell(notice.message)
    cells = read_table(arguments.table, verbatim=True)  # as they are: an identifier keeps its leading zeros
    text = predicted.assign(**{name: cells[name].to_numpy() for name in cells}).to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
    else:
        write_whole(out, text, "--out")
        print(f"wrote {out}: {len(predicted):,} rows")
    if evaluated := model.evaluate(predicted):
        tell(evaluated)


OPTIONS = [
    Option("model MODEL", "folder that `dendritree fit` wrote"),
    Option("table TABLE", "a CSV or Parquet file with the same columns"),
    Option("--out FILE", "CSV file for rows and predictions (default: print them)"),
    Option("--strict", "reject values that the model has not seen in training"),
]
EXAMPLES = "dendritree predict model new.csv --out predictions.csv"
