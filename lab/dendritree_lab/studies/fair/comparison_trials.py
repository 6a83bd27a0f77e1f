"""A cell of the comparison and its trials: one model each, evaluated on validation, and on the test set if chosen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from dendritree.errors import FormatError, check_int, check_one_of
from dendritree.training import evaluate

from ..engine.configuration import Configuration, train
from ..engine.runner import alone_on_one_thread
from ..engine.task import Task, epochs_for
from ..engine.trial import SEARCH, TEST, Trial, Value, seed_of
from .families import FAMILIES

STUDY = "fair"


@dataclass(frozen=True)
class Cell:
    """A family at a parameter budget on a task: one search, one choice, several evaluated models."""

    task: Task
    budget: int
    """Number of parameters; 0 for a family that has only one size."""
    family: str

    @classmethod
    def of(cls, trial: Trial, tasks: Mapping[str, Task] = MappingProxyType({})) -> Cell:
        """The cell that a trial belongs to.

        Args:
            trial: the trial.
            tasks: the tasks of the user's own data, by name; others are built-in.
        """
        name = str(trial.key["task"])
        task = tasks[name] if name in tasks else Task.parse(name)
        return cls(task, int(trial.key["budget"]), str(trial.key["family"]))

    @property
    def key(self) -> dict[str, Value]:
        """The part of a trial's key that identifies the cell."""
        return {"task": self.task.name, "budget": self.budget, "family": self.family}

    @property
    def name(self) -> str:
        """The family, short enough for a column."""
        return FAMILIES[self.family].name


@dataclass(frozen=True)
class FairJob:
    """A model of a cell to train. It depends only on its own fields."""

    study: ClassVar[str] = STUDY
    size: ClassVar[int] = 1
    phase: str
    cell: Cell
    index: int
    choice: Configuration
    steps: int

    @property
    def key(self) -> dict[str, Value]:
        """The key of its trial."""
        return {"phase": self.phase, **self.cell.key, "trial": self.index}

    @property
    def group(self) -> str:
        """The jobs that its progress is shown with."""
        budget = f"{self.cell.budget:,} parameters" if self.cell.budget else "one size"
        return f"{self.cell.task.name}, {budget}, {self.phase}"

    @property
    def seed(self) -> int:
        """The seed for weights, wiring and batches."""
        cell = self.cell
        return seed_of("compare", self.phase, cell.task.name, cell.family, cell.budget, self.index)


def run_fair_job(job: FairJob, data_dir: str | None = None) -> list[Trial]:
    """Train the job's model in this process, on one torch thread."""
    task = job.cell.task
    split = task.load(data_dir)
    with alone_on_one_thread():
        start = time.perf_counter()
        epochs = epochs_for(len(split.train), job.steps)
        model, history = train(job.choice, task, split, epochs=epochs, seed=job.seed)
        seconds = time.perf_counter() - start
        scores = {}
        if job.phase == TEST:
            scores = dict(zip(("test_loss", "test_acc"), evaluate(model, split.test, task.loss), strict=True))
    config = vars(job.choice)
    return [Trial.of_history(STUDY, job.key, job.seed, config, model, history, seconds, scores)]


def read_fair_trial(trial: Trial, tasks: Mapping[str, Task] = MappingProxyType({})) -> Trial:
    """Return a stored trial after checking that it belongs to a comparison; `tasks` as in `Cell.of`."""
    check_one_of("phase", trial.key["phase"], (SEARCH, TEST))
    check_int("trial", trial.key["trial"], least=0)
    check_int("budget", trial.key["budget"], least=0)
    check_int("parameters", trial.parameters)
    check_one_of("family", Cell.of(trial, tasks).family, FAMILIES)
    choice_of(trial)
    if trial.key["phase"] == TEST and not {"test_loss", "test_acc"} <= trial.scores.keys():
        raise FormatError(f"a model that was evaluated must have a test loss and accuracy: got {trial.scores}")
    return trial


def validation_score(task: Task, trial: Trial) -> float:
    """The score by which a choice is compared with others."""
    return task.score(trial.at_best("val_loss"), trial.at_best("val_acc"))


def choice_of(trial: Trial) -> Configuration:
    """The choice that a trial was made with."""
    return Configuration(**trial.config)
