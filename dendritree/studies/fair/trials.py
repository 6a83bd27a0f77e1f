"""One trial of a comparison: train one model, judge it on validation, and on the test set if it was chosen."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from ...models import create_model
from ...models.sizing import parameters_of
from ...training import FitConfig, evaluate, fit
from ...training.rewiring import Rewiring
from ..engine.records import CURVES, Row, TrialRecord
from ..engine.schema import TrialKey
from ..engine.seeds import seed_of
from ..engine.workers import alone_on_one_thread
from .families import Choice
from .tasks import BATCH_SIZE, Task

__all__ = ["SEARCH", "TEST", "CompareJob", "run_compare_job", "table_of"]

SEARCH, TEST = "search", "test"
"""What a trial is for: to choose among, or to judge the choice on the test set with a fresh seed."""


def table_of(task: Task, family: str) -> str:
    """The store's table of a family's trials on a task; its last word is the family."""
    return f"{task.name} {family}"


@dataclass(frozen=True)
class CompareJob:
    """A model to train. It depends on its own fields alone."""

    phase: str
    task: Task
    family: str
    budget: int
    index: int
    choice: Choice
    steps: int

    @property
    def row(self) -> Row:
        """Where the store keeps it: a table for each task and family."""
        table = table_of(self.task, self.family)
        return Row(table, self.task.name, self.choice.network, self.budget, self.choice.dropout)

    @property
    def key(self) -> TrialKey:
        """Its key in the store."""
        row = self.row
        return TrialKey(self.phase, row.table, row.network, row.size, row.dropout, self.index)

    @property
    def seed(self) -> int:
        """Of weights, wiring and batches."""
        return seed_of("compare", self.phase, self.task.name, self.family, self.budget, self.index)


def run_compare_job(job: CompareJob, data_dir: str | None = None) -> list[TrialRecord]:
    """Train the job's model in this process, on one thread of torch."""
    split = job.task.load(data_dir)
    with alone_on_one_thread():
        torch.manual_seed(job.seed)
        model = create_model(job.choice.network, **job.choice.config)
        epochs = job.task.epochs(len(split.train), job.steps)
        config = FitConfig(
            loss=job.task.loss,
            epochs=epochs,
            batch_size=BATCH_SIZE,
            lr=job.choice.lr,
            schedule="one-cycle",
            optimizer="adamw",
            weight_decay=job.choice.weight_decay,
            seed=job.seed,
        )
        callbacks = [_rewiring(job)] if job.choice.rewired else []
        start = time.perf_counter()
        history = fit(model, split, config, callbacks=callbacks)
        seconds = time.perf_counter() - start
        if history.interrupted:
            raise KeyboardInterrupt
        judged = evaluate(model, split.test, job.task.loss) if job.phase == TEST else (None, None)
    columns = history.columns()
    return [
        TrialRecord(
            protocol=job.phase,
            row=job.row,
            index=job.index,
            seed=job.seed,
            dataset=job.task.name,
            lr=job.choice.lr,
            parameters=parameters_of(model),
            seconds=seconds,
            history={name: columns[name] for name in CURVES},
            test_loss=judged[0],
            test_acc=judged[1],
            model_config=job.choice.as_stored(),
        )
    ]


def _rewiring(job: CompareJob) -> Rewiring:
    """Synapses move within their windows where they have any."""
    where = "window" if job.task.image_shape is not None else "anywhere"
    return Rewiring(job.choice.rewired, where=where, seed=job.seed)
