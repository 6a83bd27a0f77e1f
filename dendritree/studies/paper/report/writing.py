"""From the folder of a reproduction to the report in it."""

from __future__ import annotations

import os

from ....report.files import ReportFiles, write_report
from ....report.layout import Report
from ...engine.store import RunStore
from ..expected import read_expected
from ..reproduce import RunPlan, planned_trials
from ..spec import matches, paper_folder, read_specs
from .tables import report_of_run


def write_reproduction(
    run: str | os.PathLike[str], plan: RunPlan | None = None, *, out: str | os.PathLike[str] | None = None
) -> tuple[Report, ReportFiles]:
    """Write the report of a run, of all its trials so far; needs the extra `report`.

    Args:
        run: the run's folder, which may still be written to.
        plan: what the run is to hold in the end, besides the tables that it has begun.
        out: a folder for the report; by default the run's own.
    """
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
