"""`dendritree fit`: a model for your own table, and whether dendrites help there."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError, OptionError
from dendritree.files import write_whole

from .messages import one_line, print_columns, print_next, tell
from .options import THREADS, Arguments, Option
from .progress import Progress

SCHEMA_FILE = "schema.json"


def run(arguments: Arguments) -> None:
    """Train a model on your own table and compare it with its controls."""
    from ..data.naming import is_table
    from ..data.tables.deciding import open_table
    from ..data.tables.reading import check_column, check_table
    from ..data.tables.schema import read_overrides
    from ..data.tables.target import read_target
    from ..report import print_report, write_report
    from ..studies.table import fit_table, table_report

    if not is_table(arguments.table):
        command = f"dendritree tune {arguments.table} --budget 2k --out {arguments.out or 'tuned'}"
        raise OptionError(f"fit reads CSV and Parquet tables: got {arguments.table}; for other data, run `{command}`")
    epochs = _epochs(arguments.epochs)
    if not arguments.dry_run and arguments.out is None:
        raise OptionError("--out must name a new or empty folder for the model: got none")
    if not arguments.dry_run:
        _check_target(Path(arguments.out), force=arguments.force)
    file, schema = open_table(arguments.table, schema=read_overrides(arguments.schema))
    frame, source = check_table(file.frame), Path(arguments.table).name
    if arguments.dry_run or arguments.target is None:
        if arguments.target is not None or not arguments.dry_run:
            check_column(frame, arguments.target, "--target")
        _print_schema(frame, schema, arguments.target)
        return
    try:
        read_target(frame, arguments.target, arguments.task, per_class=arguments.splits, schema=schema)
    except OptionError as error:
        raise OptionError(_on_the_command_line(str(error))) from None
    for notice in schema.notices:
        tell(notice)
    out = Path(arguments.out)
    unfinished = unfinished_folder(out)
    with Progress("models", overall=None if arguments.quick else "in all") as progress:
        written = _Written(out, f"{source}: {len(frame):,} rows, {len(frame.columns):,} columns", progress)
        with written.kept():
            fit = fit_table(
                frame,
                arguments.target,
                schema=schema,
                **arguments.only("budget", "task", "keep", "quick", "splits", "seed", "threads"),
                epochs=epochs,
                observer=written.observe,
                ready=written.save if arguments.quick else written.first,
                unfinished=unfinished,
                anew=arguments.force,
            )
            if not arguments.quick:
                report = table_report(fit, source)
                written.save(fit.model)
                write_report(report, out, pictures=True)
    shutil.rmtree(unfinished, ignore_errors=True)
    if arguments.quick:
        for notice in fit.notices[len(schema.notices) :]:
            tell(notice)
        print(f"model:  {out}, {fit.model.estimator.n_parameters_:,} parameters, not compared with other models")
    else:
        print_report(report)
        print(f"\nmodel:  {out}\nreport: {out / 'report.html'}")
    print_next("predict", out, "new.csv", "--out", "predictions.csv")
    print_next("view", out)


class _Written:
    """The model's folder: written as soon as the first model is trained, and kept after Ctrl-C."""

    def __init__(self, out: Path, table: str, progress: Progress) -> None:
        self.out, self.table, self.progress = out, table, progress
        self.start, self.there = 0.0, False

    def observe(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show the progress; its first call comes after all checks."""
        if not self.start:
            self.start = time.monotonic()
            print(self.table, file=sys.stderr, flush=True)
        self.progress(what, done, total, note)

    def save(self, model: Any) -> None:
        """Write the model, and a copy of its schema to edit and pass to `--schema`."""
        from dendritree.storage import save

        save(model, self.out)
        text = json.dumps(model.encoding.schema.as_dict(), indent=2, ensure_ascii=False) + "\n"
        write_whole(self.out / SCHEMA_FILE, text, "the schema")
        self.there = True

    def first(self, model: Any) -> None:
        """Write the first model, and announce the comparison."""
        self.save(model)
        seconds = time.monotonic() - self.start
        print(
            f"{self.out} has a model that can be used now, after {seconds:.1f} s. Next, cross-validation compares it "
            "with others; Ctrl-C keeps the model, --quick skips the comparison",
            file=sys.stderr,
            flush=True,
        )

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """On Ctrl-C, report what was saved."""
        try:
            yield
        except KeyboardInterrupt:
            folder = unfinished_folder(self.out)
            resumes = f"; {folder} keeps the comparison, and the same command resumes it" if folder.is_dir() else ""
            model = f"; the model in {self.out} is complete" if self.there else ""
            raise KeyboardInterrupt(f"stopped{model}{resumes}") from None


def _on_the_command_line(message: str) -> str:
    r"""A message of the library that advises an argument, with the option of the command instead.

    >>> _on_the_command_line("... of type date; types={'sold': \"category\"} reads classes")
    '... of type date; --schema FILE with {"columns": {"sold": {"type": "category"}}} reads classes'
    """
    message = re.sub(
        r"""types=\{(['"])(.*)\1: "(\w+)"\}""", r'--schema FILE with {"columns": {"\2": {"type": "\3"}}}', message
    )
    return message.replace("task='regression'", "--task regression")


def _print_schema(frame: Any, schema: Any, target: str | None) -> None:
    """Print how each column is read, and which ones `fit` leaves out."""
    from ..data.tables.cells import as_text
    from ..data.tables.encoding import learn_column
    from ..data.tables.reading import first_few
    from ..data.tables.schema import COUNTS_ROWS

    target = None if target is None else target.strip()
    rows, (values, _) = [], schema.read(frame)
    known = values if target not in values else values[values[target].notna()]
    for name, column in schema.columns.items():
        missing = int(values[name].isna().sum()) if name in values else 0
        learned = learn_column(known[name], column) if name in values and name != target else None
        notes = [note for note in column.notes if note != COUNTS_ROWS]
        notes += [f"left out: {learned}"] if isinstance(learned, str) else []
        notes += ["the target"] if name == target else []
        shown = first_few([one_line(text)[:20] for text in as_text(frame[name]).dropna().unique()[:4]], 3)
        kind = f"{column.type}, {column.order}" if column.order else column.type
        rows.append((one_line(name)[:40], kind, shown, missing, "; ".join(map(one_line, notes))))
    print_columns(("column", "type", "cells", "missing", "notes"), rows)
    written = ((name, getattr(schema, name)) for name in ("separator", "encoding", "decimal", "thousands"))
    print("\n" + ", ".join(f"{name} {value!r}" for name, value in written if value is not None))
    print('To change this: --schema FILE, a JSON file such as {"columns": {"zip": {"type": "category"}}}')


def unfinished_folder(out: Path) -> Path:
    """The folder next to the model's that keeps the trials of the comparison until the report is written.

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
    """Before training, reject a path that is neither new nor an empty folder, nor a model folder with `force`."""
    from dendritree.storage.folders import check_target

    from ..report.files import check_report_target

    resumed = out.is_dir() and unfinished_folder(out).is_dir()
    if not force and not resumed and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise OptionError(f"--out must be a new or empty folder unless --force is given: {out} exists")
    try:
        check_target(out)
    except FormatError:
        raise OptionError(f"--force replaces only model folders: {out} is not one") from None
    check_report_target(out)


OPTIONS = [
    Option("table TABLE", "a CSV or Parquet file, one example per row"),
    Option("--target COL", "column to predict"),
    Option("--out DIR", "new or empty folder for the model and the report"),
    Option("--dry-run", "print how each column is read, without training"),
    Option("--quick", "train the model only, without comparison and report"),
    Option("--schema FILE", "JSON file that overrides detected column types and file format"),
    Option("--force", "replace an existing model, and discard an unfinished fit"),
    Option("--budget N", "parameters, such as 5k (default: from the table's size)", "auto"),
    Option("--task T", "classification, regression or auto (default)", "auto"),
    Option("--keep K", "model to keep: tree, sparse, dense, linear or best (default: the recommended one)", "best"),
    Option("--splits N", "cross-validation folds of the comparison", 5),
    Option("--epochs N", "training epochs (default: from the number of rows)", "auto"),
    Option("--seed N", "random seed", 0),
    THREADS,
]
EXAMPLES = "dendritree fit houses.csv --target price --out model"
