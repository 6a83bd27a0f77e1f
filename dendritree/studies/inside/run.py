"""The study of parts from beginning to end: what a folder lacks is done, and everything done is kept at once."""

from __future__ import annotations

import os
import time

from ...errors import OptionError
from ..engine.runner import Observer, Workers, run_jobs, silent
from ..engine.store import RunStore
from ..engine.trial import Trial
from .plan import InsideJob, InsidePlan, read_inside_trial, run_inside_job


def compare_inside(
    folder: str | os.PathLike[str],
    plan: InsidePlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run what `folder` lacks of a plan; return whether all of it is there now. The same call resumes.

    Args:
        folder: the run's folder, made if needed; it may take more hosts and kinds later.
        plan: what to compare.
        workers: where; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: begin no trial after this time.
        observer: told how many trials of each step are there.
    """
    if hours is not None and not hours > 0:
        raise OptionError(f"hours must be a positive number: got {hours!r}")
    deadline = None if hours is None else time.monotonic() + 3600 * hours

    def late() -> bool:
        return deadline is not None and time.monotonic() > deadline

    with RunStore.create_or_open(folder, plan.as_config()) as store, workers or Workers() as pool:
        while jobs := _missing(store, plan):
            if late():
                return False
            what, total, done = f"{jobs[0].cell.host}, {jobs[0].phase}", len(jobs), 0

            def keep(_job: InsideJob, trial: Trial, what: str = what, total: int = total) -> None:
                nonlocal done
                store.add([trial])
                done += 1
                observer(what, done, total)

            observer(what, 0, total)
            run_jobs(jobs, pool, keep, work=run_inside_job, data_dir=data_dir, stop=late if hours else None)
    return True


def _missing(store: RunStore, plan: InsidePlan) -> list[InsideJob]:
    """The trials of a host on a data set that can be named and are not there: hosts one after the other."""
    present, trials = store.present(), store.read_trials(read_inside_trial, with_weights=False)
    first: tuple[str, str] | None = None
    found = []
    for cell in plan.cells:
        place = (cell.host, cell.dataset)
        missing = [job for job in plan.jobs(cell, trials) if job.stored_key not in present]
        if missing and first in (None, place):
            first = place
            found += missing
    return found
