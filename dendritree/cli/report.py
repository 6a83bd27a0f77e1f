"""`dendritree report`: the report of a run, made anew from its records."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError
from .command import Command

if TYPE_CHECKING:
    from ..report import Report, ReportFiles
    from ..studies.paper.reproduce import RunPlan

__all__ = ["REPORT", "make_report", "print_files"]


def _report(arguments: argparse.Namespace) -> int:
    from ..report import print_report
    from ..studies.engine.store import RunStore

    with RunStore.open_for_reading(arguments.run) as store:
        is_comparison = "comparison" in store.config
    if is_comparison:
        return _report_comparison(arguments)
    report, files = make_report(arguments.run, out=arguments.out)
    if arguments.export or arguments.weights:
        with RunStore.open_for_reading(arguments.run) as store:
            target = files.html.parent
            if arguments.export:
                store.export(target / "data", arguments.export)
            if arguments.weights:
                store.export_weights(target / "models")
    print_report(report, whole=arguments.all)
    print_files(files)
    return 0


def _report_comparison(arguments: argparse.Namespace) -> int:
    from ..studies.engine.store import RunStore
    from ..studies.fair.report import print_comparison, write_comparison

    if arguments.out or arguments.all or arguments.weights:
        raise OptionError(f"the report of a comparison takes --export alone: {arguments.run} is one")
    comparison, files = write_comparison(arguments.run)
    if arguments.export:
        with RunStore.open_for_reading(arguments.run) as store:
            store.export(Path(arguments.run) / "data", arguments.export)
    print_comparison(comparison)
    print(f"wrote {', '.join(map(str, files))}")
    return 0


def make_report(
    run: str | Path, plan: RunPlan | None = None, *, out: str | Path | None = None
) -> tuple[Report, ReportFiles]:
    """Build a run's report and write it into `out`, by default the run's own folder."""
    from ..report import write_report
    from ..studies.engine.store import RunStore
    from ..studies.paper.expected import read_expected
    from ..studies.paper.report.tables import report_of_run
    from ..studies.paper.reproduce import RunPlan, planned_trials
    from ..studies.paper.spec import matches, paper_folder, read_specs

    with RunStore.open_for_reading(run) as store:
        begun = {(key.protocol, key.table) for key in store.present()}
        plans = {protocol: RunPlan.make(protocol=protocol) for protocol in ("paper", "full")}
        planned = {
            key: trials
            for protocol, each in plans.items()
            for key, trials in planned_trials(each, store).items()
            if (protocol, key[1].table) in begun
        }
        if plan is not None:
            planned |= planned_trials(plan, store)
        reference = {("paper", row): seconds for row, seconds in store.reference_seconds.items()}
    expected = read_expected(paper_folder() / "expected" / "results.csv")
    report = report_of_run(run, expected, matches(read_specs()), planned=planned, reference_seconds=reference)
    return report, write_report(report, out or run)


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
