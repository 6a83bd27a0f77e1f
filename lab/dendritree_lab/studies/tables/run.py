"""The study on tables from beginning to end: missing trials are run, and every result is stored immediately."""

from __future__ import annotations

import os
import time
from collections import Counter

from dendritree.errors import MissingDataError, OptionError

from ..engine.runner import Observer, Workers, run_jobs, silent
from ..engine.store import RunStore
from ..engine.trial import Trial
from .plan import TableJob, TablesPlan, run_table_job
from .tables import TABLES


def compare_tables(
    folder: str | os.PathLike[str],
    plan: TablesPlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run what `folder` lacks of a plan; return whether the plan is now complete. The same call resumes.

    Args:
        folder: the run's folder, created if necessary; more tables and families may be added to it later.
        plan: what to compare.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: start no model after this time.
        observer: notified of how many models are done, and which table is complete.
    """
    if hours is not None and not hours > 0:
        raise OptionError(f"hours must be a positive number: got {hours!r}")
    deadline = None if hours is None else time.monotonic() + 3600 * hours

    def late() -> bool:
        return deadline is not None and time.monotonic() > deadline

    with RunStore.create_or_open(folder, plan.as_config()) as store, workers or Workers() as pool:
        present, every = store.present(), plan.jobs()
        jobs = [job for job in every if job.stored_key not in present]
        _check_data(dict.fromkeys(job.table for job in jobs), data_dir)
        open_jobs, done, total = Counter(job.table for job in jobs), len(every) - len(jobs), len(every)

        def keep(job: TableJob, trial: Trial) -> None:
            nonlocal done
            store.add([trial])
            done += 1
            open_jobs[job.table] -= 1
            observer("tables", done, total, "" if open_jobs[job.table] else f"{job.table} is complete")

        observer("tables", done, total)
        run_jobs(jobs, pool, keep, work=run_table_job, data_dir=data_dir, stop=late if hours else None)
    return done == total


def _check_data(tables: dict[str, None], data_dir: str | None) -> None:
    """Load every table before any time is spent on training; workers then find the files in the cache."""
    for name in tables:
        try:
            TABLES[name].load(data_dir)
        except MissingDataError as error:
            raise MissingDataError(f"{error}; to skip {name}, name the other tables with --tables") from None
