"""`dendritree fit`: a model of your own table, and whether dendrites help there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from dendritree.errors import FormatError, OptionError

from .messages import print_next
from .options import Arguments, Option
from .progress import Progress, resumable


def run(arguments: Arguments) -> None:
    """Train a model on your own table and compare it with its controls."""
    from dendritree.storage import save

    from ..data.naming import is_table
    from ..data.tables.reading import read_table
    from ..report import print_report, write_report
    from ..studies.table import fit_table, table_report

    if not is_table(arguments.table):
        command = f"dendritree tune {arguments.table} --budget 2k --out {arguments.out}"
        raise OptionError(f"fit reads tables, CSV or Parquet: got {arguments.table}; for other data run `{command}`")
    out, epochs = Path(arguments.out), _epochs(arguments.epochs)
    _check_target(out, force=arguments.force)
    frame, source = read_table(arguments.table), Path(arguments.table).name
    unfinished = unfinished_folder(out)
    with resumable(unfinished), Progress("models") as progress:

        def observe(what: str, done: int, total: int, note: str = "") -> None:
            if what == "comparing" and not done:  # all checks have passed
                print(f"{source}: {len(frame):,} rows, {len(frame.columns):,} columns", file=sys.stderr, flush=True)
            progress(what, done, total, note)

        fit = fit_table(
            frame,
            arguments.target,
            **arguments.only("budget", "task", "keep", "splits", "seed"),
            epochs=epochs,
            observer=observe,
            unfinished=unfinished,
            anew=arguments.force,
        )
        report = table_report(fit, source)
        save(fit.model, out)
        write_report(report, out, pictures=True)
    shutil.rmtree(unfinished, ignore_errors=True)
    print_report(report)
    print(f"\nmodel:  {out}\nreport: {out / 'report.html'}")
    print_next("predict", out, "new.csv", "--out", "predictions.csv")
    print_next("view", out)


def unfinished_folder(out: Path) -> Path:
    """The folder beside that of a model which keeps the trials of the comparison until the model is written.

    >>> unfinished_folder(Path("model")).name
    'model.unfinished'
    """
    target = out.resolve()
    return target.with_name(f"{target.name}.unfinished")


def _epochs(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and text.isascii()):
        raise OptionError(f"--epochs must be an integer or auto: got {text!r}")
    return text if text == "auto" else int(text)


def _check_target(out: Path, *, force: bool) -> None:
    """Before training, reject a path that is neither new nor an empty folder nor, with `force`, a model folder."""
    from dendritree.storage.folders import check_target

    from ..report.files import check_report_target

    if not force and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise OptionError(f"--out must be a new or empty folder unless --force is given: {out} exists")
    try:
        check_target(out)
    except FormatError:
        raise OptionError(f"--force only replaces model folders: {out} exists and is not one") from None
    check_report_target(out)


OPTIONS = [
    Option("table TABLE", "a CSV or Parquet file, one example per row"),
    Option("--target COL", "column to predict", required=True),
    Option("--out DIR", "new or empty folder for the model and the report", required=True),
    Option("--force", "replace the model there, and what another fit left unfinished"),
    Option("--budget N", "parameters, such as 5k (default: from the table's size)", "auto"),
    Option("--task T", "classification, regression or auto (default)", "auto"),
    Option("--keep K", "best (default: what the comparison recommends), tree, sparse, dense or linear", "best"),
    Option("--splits N", "cross-validation folds of the comparison", 5),
    Option("--epochs N", "passes over the rows (default: from their number)", "auto"),
    Option("--seed N", "random seed", 0),
]
EXAMPLES = "dendritree fit houses.csv --target price --out model"
