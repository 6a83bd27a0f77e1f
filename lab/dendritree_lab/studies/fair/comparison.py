"""A comparison from beginning to end: missing trials are run, and every result is stored immediately."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from dendritree.errors import FormatError, check_float
from dendritree.training import evaluate

from ..engine.configuration import train
from ..engine.runner import Observer, Workers, alone_on_one_thread, run_rounds, silent
from ..engine.store import RunStore
from ..engine.task import Task, epochs_for
from ..engine.trial import FINAL, TEST, Trial, state_bytes
from .comparison_plan import ComparisonPlan, FairJob, draw_configuration

TASKS_FACT = "tasks"
DATA_FOLDER = "data"
"""Copies of the user's own data, for the processes that train."""


def compare(
    folder: str | os.PathLike[str],
    plan: ComparisonPlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run the trials of a plan that `folder` lacks; return whether the plan is now complete.

    After an interruption, a crash or a time limit, the same call resumes.

    Args:
        folder: the run's folder, created if necessary; more data sets and budgets may be added to it later.
        plan: what to compare.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: start no trial after this time.
        observer: notified of how many trials of each step are done.
    """
    if hours is not None:
        check_float("hours", hours, "a positive number", lambda number: number > 0)
    for cell in plan.cells:  # raise for missing data and budgets too small for a model before anything is written
        cell.task.load(data_dir)
        draw_configuration(cell, 0)
    with RunStore.create_or_open(folder, plan.as_config()) as store:
        options: dict[str, Any] = {"workers": workers, "data_dir": data_dir, "hours": hours, "observer": observer}
        return run_rounds(store, _rounds(plan, store), run_fair_job, stored=store.__contains__, **options)


def _rounds(plan: ComparisonPlan, store: RunStore) -> Iterator[list[FairJob]]:
    """The trials of a plan, grouped by comparable cells: the searches, then the tests of what they selected."""
    check_data(store, plan)
    for cells in plan.kept_in(store.folder / DATA_FOLDER).rounds():
        yield [job for cell in cells for job in plan.searches(cell)]
        trials = store.trials(task=cells[0].task.name, budget=cells[0].budget)
        yield [job for cell in cells for job in plan.tests(cell, trials)]


def check_data(store: RunStore, plan: ComparisonPlan) -> None:
    """Store what a report must know about the user's own data; reject data that has changed."""
    kept = store.fact(TASKS_FACT, {})
    new = {task.name: task.as_fact() for task in plan.tasks if task.digest}
    begun = {str(trial.key["task"]) for trial in store.trials()}
    for name, fact in new.items():
        before = kept.get(name)
        if before is None and name in begun:
            raise FormatError(f"cannot resume: {name!r} was a built-in data set; use another --run folder")
        if before is not None and before != fact:
            what = [key for key in fact if before.get(key) != fact[key] and key != "digest"]
            changed = ", ".join(f"{key} from {before.get(key)} to {fact[key]}" for key in what) or "other values"
            raise FormatError(f"cannot resume: the data of {name} changed ({changed}); use another --run folder")
    if not new.items() <= kept.items():
        store.set_fact(TASKS_FACT, kept | new)


def run_fair_job(job: FairJob, data_dir: str | None = None) -> list[Trial]:
    """Train the job's model in this process, on one torch thread; evaluate it on the test set if it is the best.

    The weights of a finalist of `tune` are kept.
    """
    task = job.cell.task
    split = task.load(data_dir)
    with alone_on_one_thread():
        start = time.perf_counter()
        epochs = epochs_for(len(split.train), job.steps)
        model, history = train(job.configuration, task, split, epochs=epochs, seed=job.seed)
        seconds = time.perf_counter() - start
        scores = {}
        if job.phase == TEST:
            scores = dict(zip(("test_loss", "test_acc"), evaluate(model, split.test, task.loss), strict=True))
    config = vars(job.configuration)
    weights = state_bytes(model) if job.phase == FINAL else None
    return [Trial.of_history(job.study, job.key, job.seed, config, model, history, seconds, scores, weights)]


def tasks_in(store: RunStore) -> dict[str, Task]:
    """The tasks of the user's own data in a run, by name, without the data."""
    return {name: Task.from_fact(name, fact) for name, fact in store.fact(TASKS_FACT, {}).items()}
