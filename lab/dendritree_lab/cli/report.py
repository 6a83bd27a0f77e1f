"""`dendritree report`: the report of a run, rebuilt from its records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dendritree.errors import OptionError

from .compare import show_comparison
from .options import Arguments, Option

if TYPE_CHECKING:
    from ..report import Report, ReportFiles


def run(arguments: Arguments) -> None:
    """Rebuild the report of a run from its records, without training."""
    from ..studies.engine.export_files import export_models, export_tables
    from ..studies.engine.store import RunStore
    from ..studies.paper.paper_report import report_of_run
    from ..studies.paper.reproduction import model_folders

    folder, out = arguments.run, Path(arguments.out or arguments.run)
    with RunStore.open_for_reading(folder) as store:
        compared = "comparison" in store.config
        if compared and (arguments.out or arguments.all or arguments.weights):
            raise OptionError(f"a comparison's report takes only --export: {folder} is a comparison")
        if arguments.export:
            export_tables(store, out / "data", arguments.export)
        if arguments.weights:
            export_models(store.kept_trials(), out / "models", model_folders)
    if compared:
        show_comparison(folder)
    else:
        show_reproduction(*report_of_run(folder, out=out), whole=arguments.all)


def show_reproduction(report: Report, files: ReportFiles, *, whole: bool = False) -> None:
    """Print the report of a reproduction, and where its files are."""
    from ..report import print_report

    print_report(report, whole=whole)
    print(f"\nreport: {files.html}\n        {files.markdown}\n        {files.html.parent / 'csv'}/")


OPTIONS = [
    Option("run RUN", "folder of the run"),
    Option("--out DIR", "folder of the report (default: the run's folder)"),
    Option("--all", "print all sections, not only the paper's tables and claims"),
    Option("--export csv|parquet", "also write every trial and epoch to data/"),
    Option("--weights", "also write the kept models to models/"),
]
EXAMPLES = "dendritree report reproduction --export csv"
