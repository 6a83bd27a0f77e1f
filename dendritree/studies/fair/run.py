"""A comparison from beginning to end: what a run's folder lacks is done, and everything done is kept at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ...errors import FormatError, OptionError
from ..engine.records import TrialRecord
from ..engine.runner import Pool, run_jobs
from ..engine.store import RunStore
from .families import Choice
from .plan import Cell, ComparisonPlan, draw_choice, in_features_of
from .trials import SEARCH, CompareJob, run_compare_job

__all__ = ["compare"]

Observer = Callable[[str, int, int], None]
"""Told (what is being done, trials of it that are done, of how many)."""


def compare(
    folder: str | os.PathLike[str],
    plan: ComparisonPlan,
    *,
    pool: Pool | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer | None = None,
) -> bool:
    """Run what `folder` lacks of a plan; return whether all of it is there now.

    Interrupted, killed, out of time or done: the same call goes on from what is there.

    Args:
        folder: the run's folder, made if needed; a folder may take more data sets and budgets later.
        plan: what to compare.
        pool: where; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: begin no trial after this time.
        observer: told what happens.
    """
    if hours is not None and not hours > 0:
        raise OptionError(f"hours must be a positive number: got {hours!r}")
    deadline = None if hours is None else time.monotonic() + 3600 * hours
    data_dir = None if data_dir is None else str(Path(data_dir).resolve())  # workers may have another folder
    _check(plan, data_dir)
    with RunStore.create_or_open(folder, plan.as_config()) as store, pool or Pool() as workers:
        _check_choices(store, plan, data_dir)
        for cells in plan.rounds():
            while jobs := _missing(store, plan, cells, data_dir):
                if deadline is not None and time.monotonic() > deadline:
                    return False
                _do(store, jobs, workers, data_dir, deadline, observer)
    return True


def _check(plan: ComparisonPlan, data_dir: str | None) -> None:
    """Find the data, and see that every budget has room for a model, before anything is written."""
    for cell in plan.cells:  # those of a task stand together, and its data stays loaded
        cell.task.load(data_dir)
        draw_choice(cell, 0, in_features_of(cell.task, data_dir))


def _check_choices(store: RunStore, plan: ComparisonPlan, data_dir: str | None) -> None:
    """Refuse to mix searches of two versions that choose otherwise: what was tried must be what would be tried now."""
    for cell in plan.cells:
        jobs = {job.index: job for job in plan.searches(cell, in_features_of(cell.task, data_dir))}
        for record in store.records(SEARCH, cell.table):
            job = jobs.get(record.index) if record.row.size == cell.budget else None
            before = Choice.of(record)
            if job is not None and before != job.choice:
                raise FormatError(
                    f"a run goes on as it was begun: choice {record.index} of {cell.family} on {cell.task.name} differs"
                    f" from this version's in {before.difference(job.choice)}"
                )


def _missing(store: RunStore, plan: ComparisonPlan, cells: list[Cell], data_dir: str | None) -> list[CompareJob]:
    """The trials that can be named and are not in the store."""
    present = store.present()
    jobs = []
    for cell in cells:
        jobs += [job for job in plan.searches(cell, in_features_of(cell.task, data_dir)) if job.key not in present]
    if not jobs:
        records = [record for cell in cells for record in store.records(table=cell.table)]
        jobs = [job for cell in cells for job in plan.tests(cell, records) if job.key not in present]
    return jobs


def _do(
    store: RunStore,
    jobs: list[CompareJob],
    pool: Pool,
    data_dir: str | None,
    deadline: float | None,
    observer: Observer | None,
) -> None:
    first, done = jobs[0], 0
    size = f"{first.budget:,} parameters" if first.budget else "one size"
    what = f"{first.task.name}, {size}, {first.phase}"

    def keep(job: CompareJob, records: list[TrialRecord]) -> None:
        nonlocal done
        del job
        store.add(records)
        done += 1
        if observer is not None:
            observer(what, done, len(jobs))

    if observer is not None:
        observer(what, 0, len(jobs))
    run_jobs(
        jobs,
        pool,
        keep,
        data_dir=data_dir,
        work=run_compare_job,
        stop=None if deadline is None else lambda: time.monotonic() > deadline,
    )
