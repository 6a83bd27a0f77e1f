"""`dendritree fit`: a model of your own table, and whether dendrites help there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import FormatError, OptionError, import_extra
from .bar import StepBar
from .command import Command

__all__ = ["FIT"]


def _fit(arguments: argparse.Namespace) -> int:
    for package in ("pandas", "sklearn", "scipy", "matplotlib", "safetensors", "rich"):
        import_extra(package, extra="tables")  # all that is needed: now, not after the training
    from ..files import whole_folder
    from ..report import print_report, write_report
    from ..sklearn.tables import read_table
    from ..storage.folders import write_files
    from ..studies.table.fit import fit_table
    from ..studies.table.sections import table_report

    out = Path(arguments.out)
    _check_target(out, force=arguments.force)
    frame = read_table(arguments.table)
    source = Path(arguments.table).name
    with StepBar("models") as bar:

        def observe(what: str, done: int, total: int) -> None:
            if what == "comparing" and not done:  # all that could be refused has been
                print(f"{source}: {len(frame):,} rows, {len(frame.columns):,} columns", file=sys.stderr, flush=True)
            bar(what, done, total)

        fit = fit_table(
            frame,
            arguments.target,
            budget=arguments.budget,
            task=arguments.task,
            neurons=arguments.neurons,
            splits=arguments.splits,
            seed=arguments.seed,
            epochs=_epochs(arguments.epochs),
            observer=observe,
        )
    report = table_report(fit, source)
    with whole_folder(out) as fresh:
        write_files(fit.model, fresh)
        write_report(report, fresh, pictures=True)
    print_report(report)
    print(f"\nmodel: {out}\nreport: {out / 'report.html'}")
    return 0


def _epochs(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise OptionError(f"--epochs must be a whole number or auto: got {text!r}")
    return text if text == "auto" else int(text)


def _check_target(out: Path, *, force: bool) -> None:
    """Refuse a place that is taken before anything is trained."""
    from ..storage.folders import folder_format

    if not out.exists() and not out.is_symlink():
        return
    if not force:
        raise OptionError(f"--out must be a new folder, or --force be given: {out} exists")
    try:
        folder_format(out)
    except FormatError as error:
        raise OptionError(f"--force replaces model folders only: {error}") from None


FIT = Command(
    "train a model on your own table, with its controls",
    "",
    _fit,
    [
        (("table",), {"metavar": "TABLE", "help": "a CSV or Parquet file, one row an example"}),
        (("--target",), {"required": True, "metavar": "COL", "help": "the column to predict"}),
        (("--out",), {"required": True, "metavar": "DIR", "help": "a new folder for model and report"}),
        (("--force",), {"action": "store_true", "help": "replace the model in that folder"}),
        (
            ("--budget",),
            {"default": "auto", "metavar": "N", "help": "parameters, as 5k (default: by the table's size)"},
        ),
        (("--task",), {"default": "auto", "metavar": "T", "help": "classification, regression or auto (default)"}),
        (("--neurons",), {"default": "tree", "metavar": "N", "help": "of the model: tree (default) or sparse"}),
        (("--splits",), {"type": int, "default": 5, "metavar": "N", "help": "parts to compare on (default: 5)"}),
        (("--epochs",), {"default": "auto", "metavar": "N", "help": "passes over the rows (default: by their number)"}),
        (("--seed",), {"type": int, "default": 0, "metavar": "N", "help": "of everything random (default: 0)"}),
    ],
    usage="dendritree fit TABLE --target COL --out DIR [options]",
    network_example="dendritree fit houses.csv --target price --out model",
)
