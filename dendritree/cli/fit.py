"""`dendritree fit`: a model of your own table, and whether dendrites help there."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import FormatError, OptionError, import_extra
from .options import Arguments, Option
from .progress import Progress


def run(arguments: Arguments) -> None:
    """Train a model on your own table, with its controls."""
    for package in ("pandas", "sklearn", "scipy", "matplotlib", "safetensors", "rich"):
        import_extra(package, extra="tables")  # all that is needed: now, not after the training
    from ..data.naming import is_table
    from ..files import whole_folder
    from ..report import print_report, write_report
    from ..sklearn.tables import read_table
    from ..storage.folders import write_files
    from ..studies.table.fit import fit_table
    from ..studies.table.sections import table_report

    if not is_table(arguments.table):
        way = f"dendritree tune {arguments.table} --budget 2k --out {arguments.out}"
        raise OptionError(f"fit makes models of tables, CSV or Parquet: got {arguments.table}; take `{way}`")
    out = Path(arguments.out)
    _check_target(out, force=arguments.force)
    frame = read_table(arguments.table)
    source = Path(arguments.table).name
    with Progress("models") as progress:

        def observe(what: str, done: int, total: int, note: str = "") -> None:
            if what == "comparing" and not done:  # nothing can be rejected any more
                print(f"{source}: {len(frame):,} rows, {len(frame.columns):,} columns", file=sys.stderr, flush=True)
            progress(what, done, total, note)

        fit = fit_table(
            frame,
            arguments.target,
            **arguments.only("budget", "task", "neurons", "splits", "seed"),
            epochs=_epochs(arguments.epochs),
            observer=observe,
        )
    report = table_report(fit, source)
    with whole_folder(out) as fresh:
        write_files(fit.model, fresh)
        write_report(report, fresh, pictures=True)
    print_report(report)
    print(f"\nmodel: {out}\nreport: {out / 'report.html'}")


def _epochs(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise OptionError(f"--epochs must be a whole number or auto: got {text!r}")
    return text if text == "auto" else int(text)


def _check_target(out: Path, *, force: bool) -> None:
    """Reject a folder that exists, before anything is trained."""
    from ..storage.folders import folder_format

    if not out.exists() and not out.is_symlink():
        return
    if not force:
        raise OptionError(f"--out must be a new folder, or --force be given: {out} exists")
    try:
        folder_format(out)
    except FormatError as error:
        raise OptionError(f"--force replaces model folders only: {error}") from None


OPTIONS = [
    Option("table TABLE", "a CSV or Parquet file, one example per row"),
    Option("--target COL", "column to predict", required=True),
    Option("--out DIR", "new folder of the model and the report", required=True),
    Option("--force", "replace the model in that folder"),
    Option("--budget N", "parameters, such as 5k (default: from the table's size)", "auto"),
    Option("--task T", "classification, regression or auto (default)", "auto"),
    Option("--neurons N", "tree (default) or sparse", "tree"),
    Option("--splits N", "cross-validation folds of the comparison", 5),
    Option("--epochs N", "passes over the rows (default: from their number)", "auto"),
    Option("--seed N", "random seed", 0),
]
EXAMPLES = "dendritree fit houses.csv --target price --out model"
