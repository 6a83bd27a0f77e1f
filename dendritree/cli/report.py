"""`dendritree report`: the report of a run, made anew from its records."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError
from .command import Command

if TYPE_CHECKING:
    from ..report import ReportFiles


def _report(arguments: argparse.Namespace) -> int:
    from ..report import print_report
    from ..studies.engine.export import export_models
    from ..studies.engine.store import RunStore
    from ..studies.paper.records import folder_names
    from ..studies.paper.report import report_of_run

    with RunStore.open_for_reading(arguments.run) as store:
        is_comparison = "comparison" in store.config
    if is_comparison:
        return _report_comparison(arguments)
    report, files = report_of_run(arguments.run, out=arguments.out)
    if arguments.export or arguments.weights:
        with RunStore.open_for_reading(arguments.run) as store:
            target = files.html.parent
            if arguments.export:
                store.export(target / "data", arguments.export)
            if arguments.weights:
                export_models(store.trials(with_weights=True), target / "models", folder_names)
    print_report(report, whole=arguments.all)
    print_files(files)
    return 0


def _report_comparison(arguments: argparse.Namespace) -> int:
    from ..studies.engine.store import RunStore
    from ..studies.fair import print_comparison, write_comparison

    if arguments.out or arguments.all or arguments.weights:
        raise OptionError(f"the report of a comparison takes --export alone: {arguments.run} is one")
    comparison, files = write_comparison(arguments.run)
    if arguments.export:
        with RunStore.open_for_reading(arguments.run) as store:
            store.export(Path(arguments.run) / "data", arguments.export)
    print_comparison(comparison)
    print(f"wrote {', '.join(map(str, files))}")
    return 0


def print_files(files: ReportFiles) -> None:
    """Where the report is."""
    print(f"\nreport: {files.html}\n        {files.markdown}\n        {files.html.parent / 'csv'}/")


REPORT = Command(
    "rebuild the report of a run from its records, without training",
    "",
    _report,
    [
        (("run",), {"metavar": "RUN", "help": "the run's folder"}),
        (("--out",), {"metavar": "DIR", "help": "where the report goes (default: the run's folder)"}),
        (("--all",), {"action": "store_true", "help": "print every section, not only the paper's tables and claims"}),
        (
            ("--export",),
            {"choices": ("csv", "parquet"), "help": "also write every trial and epoch, into data/"},
        ),
        (("--weights",), {"action": "store_true", "help": "also write the kept models, into models/"}),
    ],
    network_example="dendritree report reproduction --export csv",
)
