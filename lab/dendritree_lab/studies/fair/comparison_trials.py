"""The trials of a comparison: training a job's model, and reading what a run has stored."""

from __future__ import annotations

import time

from dendritree.training import evaluate

from ..engine.configuration import train
from ..engine.runner import alone_on_one_thread
from ..engine.store import RunStore
from ..engine.task import Task, epochs_for
from ..engine.trial import TEST, Trial
from .comparison_plan import FairJob

TASKS_FACT = "tasks"


def run_fair_job(job: FairJob, data_dir: str | None = None) -> list[Trial]:
    """Train the job's model in this process, on one torch thread; evaluate it on the test set if it is the best."""
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
    return [Trial.of_history(job.study, job.key, job.seed, config, model, history, seconds, scores)]


def tasks_in(store: RunStore) -> dict[str, Task]:
    """The tasks of the user's own data in a run, by name, without the data."""
    return {name: Task.from_fact(name, fact) for name, fact in store.fact(TASKS_FACT, {}).items()}
