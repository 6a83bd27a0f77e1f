"""A comparison from beginning to end: missing trials are run, and every result is stored immediately."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dendritree.errors import FormatError

from ..engine.runner import Observer, Workers, run_rounds, silent
from ..engine.store import RunStore
from ..engine.task import Task
from ..engine.trial import SEARCH, Trial, Value
from .comparison_plan import ComparisonPlan, draw_choice
from .comparison_trials import Cell, FairJob, choice_of, read_fair_trial, run_fair_job

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
    """Run what `folder` lacks of a plan; return whether the plan is now complete.

    After an interruption, a crash or a time limit, the same call resumes.

    Args:
        folder: the run's folder, created if necessary; more data sets and budgets may be added to it later.
        plan: what to compare.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: start no trial after this time.
        observer: notified of how many trials of each step are done.
    """
    for cell in plan.cells:  # raise for missing data and budgets too small for a model before anything is written
        cell.task.load(data_dir)
        draw_choice(cell, 0)
    with RunStore.create_or_open(folder, plan.as_config()) as store:
        rounds = _rounds(plan, store)
        return run_rounds(
            store, rounds, run_fair_job, workers=workers, data_dir=data_dir, hours=hours, observer=observer
        )


def _rounds(plan: ComparisonPlan, store: RunStore) -> Iterator[list[FairJob]]:
    """The missing trials of a store, grouped by comparable cells, after checking that they match what it contains."""
    _check_data(store, plan)
    _check_choices(trials_in(store, phase=SEARCH), plan)
    for cells in plan.kept_in(store.folder / DATA_FOLDER).rounds():
        while jobs := _missing(store, plan, cells):
            yield jobs


def _check_data(store: RunStore, plan: ComparisonPlan) -> None:
    """Store what a report must know about the user's own data; reject data that has changed."""
    kept = store.fact(TASKS_FACT, {})
    new = {task.name: task.as_fact() for task in plan.tasks if task.digest}
    begun = {str(trial.key["task"]) for trial in store.trials()}
    for name, fact in new.items():
        before = kept.get(name)
        if before is None and name in begun:
            raise FormatError(f"a run resumes with the data it was started with: {name!r} was a built-in data set")
        if before is not None and before != fact:
            what = [key for key in fact if before.get(key) != fact[key] and key != "digest"]
            differs = ", ".join(f"{key} {before.get(key)} -> {fact[key]}" for key in what) or "its content"
            raise FormatError(
                f"a run resumes with the data it was started with: {name} has changed ({differs}); use another folder"
            )
    if not new.items() <= kept.items():
        store.set_fact(TASKS_FACT, kept | new)


def tasks_in(store: RunStore) -> dict[str, Task]:
    """The tasks of the user's own data in a run, by name, without the data."""
    return {name: Task.from_fact(name, fact) for name, fact in store.fact(TASKS_FACT, {}).items()}


def trials_in(store: RunStore, **key: Value) -> list[Trial]:
    """The trials of a run whose keys have these values; a trial of another study raises `FormatError`."""
    tasks = tasks_in(store)
    return [read_fair_trial(trial, tasks) for trial in store.trials(**key)]


def _check_choices(searched: list[Trial], plan: ComparisonPlan) -> None:
    """Check that the stored choices are those that this version would draw, so that searches are not mixed."""
    cells = {(cell.task.name, cell.budget, cell.family): cell for cell in plan.cells}
    for trial in searched:
        cell = cells.get((str(trial.key["task"]), int(trial.key["budget"]), str(trial.key["family"])))
        index = int(trial.key["trial"])
        if cell is not None and index < plan.trials:
            before, now = choice_of(trial), draw_choice(cell, index)
            if before != now:
                raise FormatError(
                    f"a run resumes as it was started: choice {index} of {cell.family} on {cell.task.name} differs from"
                    f" this version's in {before.difference(now)}"
                )


def _missing(store: RunStore, plan: ComparisonPlan, cells: list[Cell]) -> list[FairJob]:
    """The trials that are known so far and not in the store: searches first."""
    jobs = [job for cell in cells for job in plan.searches(cell) if job not in store]
    if not jobs:
        trials = trials_in(store, task=cells[0].task.name, budget=cells[0].budget)
        jobs = [job for cell in cells for job in plan.tests(cell, trials) if job not in store]
    return jobs
