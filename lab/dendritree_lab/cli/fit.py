"""`dendritree fit`: a model of your own table, and whether dendrites help there."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dendritree.errors import DendritreeError, FormatError, OptionError, import_extra

from .messages import print_next, tell
from .options import Arguments, Option
from .progress import Progress, resumable

if TYPE_CHECKING:
    from ..studies.table import TableModel

UNFINISHED = ".dendritree.unfinished"
"""In the folder of a model: the trials of the comparison, until the model is written."""


def run(arguments: Arguments) -> None:
    """Train a model on your own table, with its controls."""
    for package in ("pandas", "sklearn", "scipy", "matplotlib", "safetensors", "rich"):
        import_extra(package, extra="tables")  # fail now, not after the training
    from dendritree.folders import files_together, reserved

    from dendritree.storage.folders import own_model_files, write_files

    from ..data.naming import is_table
    from ..report import print_report
    from ..report.files import own_report_files, put_contents, report_contents
    from ..studies.table import fit_table, read_table, table_report

    if not is_table(arguments.table):
        way = f"dendritree tune {arguments.table} --budget 2k --out {arguments.out}"
        raise OptionError(f"fit reads tables, CSV or Parquet: got {arguments.table}; for other data run `{way}`")
    keep = _keep(arguments)
    out = Path(arguments.out)
    unfinished = out / UNFINISHED
    _check_target(out, force=arguments.force)
    source = Path(arguments.table).name
    with resumable(str(out), kept=unfinished.is_dir), reserved(out, "--out", patience=0) as place:
        _check_target(place, force=arguments.force)  # again, now that no other process writes there
        ours = own_model_files(place)  # before other processes may write files there
        frame = read_table(arguments.table)
        with Progress("models") as progress:

            def observe(what: str, done: int, total: int, note: str = "") -> None:
                if what == "comparing" and not done:  # all checks have passed
                    print(f"{source}: {len(frame):,} rows, {len(frame.columns):,} columns", file=sys.stderr, flush=True)
                progress(what, done, total, note)

            fit = fit_table(
                frame,
                arguments.target,
                **arguments.only("budget", "task", "splits", "seed"),
                keep=keep,
                epochs=_epochs(arguments.epochs),
                observer=observe,
                unfinished=unfinished,
                anew=arguments.force,
            )
        report = table_report(fit, source)
        contents = report_contents(report, pictures=True)
        try:
            with files_together(place, [*ours, *own_report_files(place, contents)], "--out") as fresh:
                write_files(fit.model, fresh)
                put_contents(contents, fresh)
        except (OSError, DendritreeError) as error:
            raise DendritreeError(f"{error}; {_rescue(fit.model, contents)}") from None
        shutil.rmtree(unfinished, ignore_errors=True)
    print_report(report)
    print(f"\nmodel:  {out}\nreport: {out / 'report.html'}")
    print_next("predict", out, "new.csv", "--out", "predictions.csv")
    print_next("view", out)


def _rescue(model: TableModel, contents: Mapping[str, bytes]) -> str:
    """Save a model and its report to another folder if they could not be written; return where they are."""
    from dendritree.storage import save

    from ..report.files import put_contents

    try:
        folder = Path(tempfile.mkdtemp(prefix="dendritree-"))
        save(model, folder)
        put_contents(contents, folder)
    except (OSError, DendritreeError) as error:
        return f"nor could the model be saved elsewhere ({error})"
    return f"the model and its report are in {folder}"


def _keep(arguments: Arguments) -> str:
    """The model to keep, also from the old name of the option."""
    if arguments.neurons is None:
        return str(arguments.keep)
    if arguments.keep != "best":
        raise OptionError(f"--neurons is the old name of --keep, so give one of them: got {arguments.neurons} too")
    tell(f"--neurons is deprecated, use --keep, its only name from the next version on: --keep {arguments.neurons}")
    return str(arguments.neurons)


def _epochs(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise OptionError(f"--epochs must be an integer or auto: got {text!r}")
    return text if text == "auto" else int(text)


def _check_target(out: Path, *, force: bool) -> None:
    """Before training, reject a folder that has files or, with `force`, one that is not a model folder."""
    from dendritree.folders import check_free, files_of_others

    from dendritree.storage.folders import folder_format

    from ..report.files import own_report_files

    if not out.exists() or (out.is_dir() and not files_of_others(out)):
        return
    if not force:
        raise OptionError(f"--out must be a new or empty folder unless --force is given: {out} exists")
    try:
        folder_format(out)
    except FormatError as error:
        raise OptionError(f"--force only replaces model folders: {error}") from None
    for name in (names := ("report.html", "report.md")):
        check_free(out, name, own_report_files(out, names))


OPTIONS = [
    Option("table TABLE", "a CSV or Parquet file, one example per row"),
    Option("--target COL", "column to predict", required=True),
    Option("--out DIR", "new or empty folder for the model and the report", required=True),
    Option("--force", "replace the model there, and what another fit left unfinished"),
    Option("--budget N", "parameters, such as 5k (default: from the table's size)", "auto"),
    Option("--task T", "classification, regression or auto (default)", "auto"),
    Option("--keep K", "best (default: what the comparison recommends), tree, sparse, dense or linear", "best"),
    Option("--neurons K", "old name of --keep"),
    Option("--splits N", "cross-validation folds of the comparison", 5),
    Option("--epochs N", "passes over the rows (default: from their number)", "auto"),
    Option("--seed N", "random seed", 0),
]
EXAMPLES = "dendritree fit houses.csv --target price --out model"
