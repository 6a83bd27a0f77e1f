"""A comparison from beginning to end: what a run's folder lacks is done, and everything done is kept at once."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path

from ...errors import FormatError, OptionError
from ..engine.runner import Observer, Workers, run_jobs, silent
from ..engine.store import RunStore
from ..engine.task import Task
from ..engine.trial import Trial, Value
from .plan import ComparisonPlan, draw_choice
from .trials import SEARCH, Cell, FairJob, choice_of, read_fair_trial, run_fair_job

DATA_FOLDER = "data"
"""Copies of the user's own data, for the processes that train."""
TASKS_FACT = "tasks"


def compare(
    folder: str | os.PathLike[str],
    plan: ComparisonPlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run what `folder` lacks of a plan; return whether all of it is there now.

    Interrupted, killed, out of time or done: the same call resumes from what is there.

    Args:
        folder: the run's folder, made if needed; a folder may take more data sets and budgets later.
        plan: what to compare.
        workers: where; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: begin no trial after this time.
        observer: told how many trials of each step are there.
    """
    if hours is not None and not hours > 0:
        raise OptionError(f"hours must be a positive number: got {hours!r}")
    deadline = None if hours is None else time.monotonic() + 3600 * hours
    data_dir = None if data_dir is None else str(Path(data_dir).resolve())  # workers may have another folder
    for cell in plan.cells:  # data that is missing and budgets without room for a model, before anything is written
        cell.task.load(data_dir)
        draw_choice(cell, 0)
    with RunStore.create_or_open(folder, plan.as_config()) as store, workers or Workers() as pool:
        _check_data(store, plan)
        _check_choices(trials_in(store, phase=SEARCH), plan)
        plan = plan.kept_in(Path(folder) / DATA_FOLDER)
        for cells in plan.rounds():
            while jobs := _missing(store, plan, cells):
                if deadline is not None and time.monotonic() > deadline:
                    return False
                _do(store, jobs, pool, data_dir, deadline, observer)
    return True


def _check_data(store: RunStore, plan: ComparisonPlan) -> None:
    """Keep what a report must know of the user's own data; do not mix trials of data that has changed."""
    kept = store.fact(TASKS_FACT, {})
    new = {task.name: task.as_fact() for task in plan.tasks if task.digest}
    begun = {str(trial.key["task"]) for trial in store.trials()}
    for name, fact in new.items():
        before = kept.get(name)
        if before is None and name in begun:
            raise FormatError(f"a run resumes with the data it began with: {name!r} was a built-in data set there")
        if before is not None and before != fact:
            what = [key for key in fact if before.get(key) != fact[key] and key != "digest"]
            differs = ", ".join(f"{key} {before.get(key)} -> {fact[key]}" for key in what) or "its content"
            raise FormatError(
                f"a run resumes with the data it began with: {name} has changed ({differs}); take another folder"
            )
    if not new.items() <= kept.items():
        store.set_fact(TASKS_FACT, kept | new)


def tasks_in(store: RunStore) -> dict[str, Task]:
    """The tasks of the user's own data in a run, by name, without the data."""
    return {name: Task.from_fact(name, fact) for name, fact in store.fact(TASKS_FACT, {}).items()}


def trials_in(store: RunStore, **key: Value) -> list[Trial]:
    """The trials of a run whose keys have these values; one that is not of a comparison raises `FormatError`."""
    return store.read_trials(functools.partial(read_fair_trial, tasks=tasks_in(store)), with_weights=False, **key)


def _check_choices(searched: list[Trial], plan: ComparisonPlan) -> None:
    """Do not mix searches of two versions that choose otherwise: what was tried must be what would be tried now."""
    cells = {(cell.task.name, cell.budget, cell.family): cell for cell in plan.cells}
    for trial in searched:
        cell = cells.get((str(trial.key["task"]), int(trial.key["budget"]), str(trial.key["family"])))
        index = int(trial.key["trial"])
        if cell is not None and index < plan.trials:
            before, now = choice_of(trial), draw_choice(cell, index)
            if before != now:
                raise FormatError(
                    f"a run resumes as it was begun: choice {index} of {cell.family} on {cell.task.name} differs from"
                    f" this version's in {before.difference(now)}"
                )


def _missing(store: RunStore, plan: ComparisonPlan, cells: list[Cell]) -> list[FairJob]:
    """The trials that can be named and are not in the store: searches first."""
    present = store.present()
    jobs = [job for cell in cells for job in plan.searches(cell) if job.stored_key not in present]
    if not jobs:
        trials = trials_in(store, task=cells[0].task.name, budget=cells[0].budget)
        jobs = [job for cell in cells for job in plan.tests(cell, trials) if job.stored_key not in present]
    return jobs


def _do(
    store: RunStore,
    jobs: list[FairJob],
    workers: Workers,
    data_dir: str | None,
    deadline: float | None,
    observer: Observer,
) -> None:
    first, done = jobs[0], 0
    size = f"{first.cell.budget:,} parameters" if first.cell.budget else "one size"
    what = f"{first.cell.task.name}, {size}, {first.phase}"

    def keep(job: FairJob, trial: Trial) -> None:
        nonlocal done
        del job
        store.add([trial])
        done += 1
        observer(what, done, len(jobs))

    observer(what, 0, len(jobs))
    stop = None if deadline is None else lambda: time.monotonic() > deadline
    run_jobs(jobs, workers, keep, work=run_fair_job, data_dir=data_dir, stop=stop)
