"""Studies that search and then test: jobs that run round by round, with every result stored immediately."""

from __future__ import annotations

import functools
import math
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from torch import nn

from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree.training import History

from .runner import Observer, Workers, run_jobs
from .store import RunStore
from .trial import CURVES, Trial, Value, key_text

SEARCH, TEST = "search", "test"
"""The purpose of a trial: a candidate in the search, or the chosen model on the test set with a fresh seed."""


@dataclass(frozen=True)
class PhaseJob:
    """A model to train. It depends only on its own fields."""

    study: ClassVar[str]
    phase: str
    cell: Any
    """What is being tried; its `key` identifies it in the study."""
    index: int

    @property
    def key(self) -> dict[str, Value]:
        """The key of its trial."""
        return {"phase": self.phase, **self.cell.key, "trial": self.index}

    @property
    def stored_key(self) -> tuple[str, str]:
        """Study and key in the form that `RunStore.present` returns."""
        return self.study, key_text(self.key)

    @property
    @abstractmethod
    def seed(self) -> int:
        """The seed for weights, wiring and batches."""

    def trial(
        self, config: Mapping[str, Any], model: nn.Module, history: History, seconds: float, scores: dict[str, float]
    ) -> Trial:
        """The trial of the trained model."""
        columns = history.columns()
        curves = {name: columns[name] for name in CURVES}
        return Trial(self.study, self.key, self.seed, config, parameters_of(model), seconds, curves, scores)


Job = TypeVar("Job", bound=PhaseJob)


def run_rounds(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    rounds: Callable[[RunStore], Iterable[tuple[str, Sequence[Job]]]],
    work: Callable[[Job, str | None], Trial],
    *,
    workers: Workers | None,
    data_dir: str | None,
    hours: float | None,
    observer: Observer,
) -> bool:
    """Open or create a run and do its jobs, one round after another; return whether all were done.

    Args:
        folder, config: as in `RunStore.create_or_open`.
        rounds: yields, for a store, the names of the rounds and the jobs that are still missing.
        work, data_dir: as in `run_jobs`.
        workers: where the jobs run; all cores of this machine by default.
        hours: start no job after this time.
        observer: notified of how many trials of each round are done.
    """
    if hours is not None and not hours > 0:
        raise OptionError(f"hours must be a positive number: got {hours!r}")
    deadline = time.monotonic() + 3600 * (math.inf if hours is None else hours)

    def late() -> bool:
        return time.monotonic() > deadline

    with RunStore.create_or_open(folder, config) as store, workers or Workers() as pool:
        for what, jobs in rounds(store):
            if late():
                return False
            observer(what, 0, len(jobs))
            keep = functools.partial(_keep, store, _Told(what, len(jobs), observer))

            run_jobs(jobs, pool, keep, work=work, data_dir=data_dir, stop=None if hours is None else late)
    return True


@dataclass
class _Told:
    """What an observer knows about a round: how many trials are done, and the best score of each family."""

    what: str
    total: int
    observer: Observer
    done: int = 0
    best: dict[Value, float] = field(default_factory=dict)

    def tell(self, family: Value, trial: Trial) -> None:
        """Report one more trial, with its score if it is the first or the best of its family."""
        self.done += 1
        accuracy, loss = trial.at_best("val_acc"), trial.at_best("val_loss")
        measure, score = ("loss", -loss) if math.isnan(accuracy) else ("accuracy", accuracy)
        news = self.done < self.total and score > self.best.get(family, -math.inf)
        self.best[family] = max(score, self.best.get(family, -math.inf))
        self.observer(
            self.what, self.done, self.total, f"{family}, validation {measure} {abs(score):.4f}" if news else ""
        )


def _keep(store: RunStore, told: _Told, job: PhaseJob, trial: Trial) -> None:
    """Store a trial and report it."""
    store.add([trial])
    told.tell(job.cell.key.get("family", job.cell.key.get("kind")), trial)
