"""`dendritree predict`: the predictions of a model that `dendritree fit` wrote, for new rows."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import OptionError, import_extra
from ..files import write_whole
from .options import Arguments, Option


def run(arguments: Arguments) -> int:
    """Predict rows of a table with a model of `fit`."""
    for package in ("pandas", "sklearn", "safetensors"):
        import_extra(package, extra="tables")
    from ..sklearn.tables import load_table_model, read_table

    out = None if arguments.out is None else Path(arguments.out)
    if out is not None and out.exists() and (not out.is_file() or out.samefile(arguments.table)):
        raise OptionError(f"--out must be a file other than the table: got {out}")
    model = load_table_model(arguments.model)
    predicted, notices = model.predict(read_table(arguments.table), strict=arguments.strict)
    for notice in notices:
        print(f"dendritree: {notice}", file=sys.stderr)
    text = predicted.to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
    else:
        write_whole(out, text, "--out")
        print(f"wrote {out}: {len(predicted):,} rows")
    judged = model.judge(predicted)
    if judged:
        print(f"dendritree: {judged}", file=sys.stderr)
    return 0


OPTIONS = [
    Option("model MODEL", "folder that `dendritree fit` wrote"),
    Option("table TABLE", "a CSV or Parquet file with the same columns"),
    Option("--out FILE", "CSV file for rows and predictions (default: print them)"),
    Option("--strict", "reject values that the model has not seen in training"),
]
EXAMPLES = "dendritree predict model new.csv --out predictions.csv"
