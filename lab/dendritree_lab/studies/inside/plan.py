"""The study of parts: hosts x data sets x kinds x shares; for each, a learning rate is chosen, then fresh seeds run."""

from __future__ import annotations

import functools
import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from dendritree.errors import FormatError, check_int, check_one_of
from dendritree.training import FitConfig, evaluate

from ..engine.configuration import ONE_CYCLE, fit_through
from ..engine.phases import SEARCH, TEST, PhaseJob, run_rounds
from ..engine.runner import Observer, Workers, alone_on_one_thread, silent
from ..engine.store import RunStore
from ..engine.trial import Trial, Value, seed_of
from .hosts import HOSTS, load_for
from .parts import KINDS, ORIGINAL, make_part
from .place import Place

STUDY = "inside"
RATES = (0.003, 0.01, 0.03)
"""Learning rates that are tried for every cell, one seed each, and compared on validation data. If 0.01 is the highest,
most cells choose it."""
DIVISORS = (2, 3, 10, 30)
"""Parts of 1/2, 1/3, 1/10 and 1/30 of the original's parameters."""
BATCH_SIZE, WEIGHT_DECAY = 128, 0.01


@dataclass(frozen=True)
class Cell:
    """A kind of part, at a share of the parameters, in a host on a data set."""

    host: str
    dataset: str
    kind: str
    divisor: int
    """The part has 1 / divisor of the original's parameters; 1 is the original."""

    @property
    def key(self) -> dict[str, Value]:
        """Its place in the study, as it appears in the keys of trials."""
        return {"host": self.host, "task": self.dataset, "kind": self.kind, "divisor": self.divisor}

    def build(self, task: Any) -> nn.Module | None:
        """The network; None if no part of the kind is small enough."""
        missing = False

        def part(place: Place) -> nn.Module:
            nonlocal missing
            made = make_part(self.kind, place, 1 / self.divisor)
            missing = missing or made is None
            return nn.Identity() if made is None else made

        network = HOSTS[self.host].build(task, part)
        return None if missing else network


@dataclass(frozen=True)
class InsideJob(PhaseJob):
    """A network to train."""

    study: ClassVar[str] = STUDY
    cell: Cell
    lr: float
    steps: int

    @property
    def seed(self) -> int:
        """The seed of weights, wiring and batches; in the search it is the same for all rates."""
        index = 0 if self.phase == SEARCH else self.index
        return seed_of(STUDY, self.phase, *self.cell.key.values(), index)


def run_inside_job(job: InsideJob, data_dir: str | None = None) -> Trial:
    """Train the job's network in this process, on one thread of torch."""
    task, split = load_for(job.cell.dataset, data_dir)
    steps = math.ceil(len(split.train) / BATCH_SIZE)
    epochs = max(1, round(job.steps / steps))
    with alone_on_one_thread():
        torch.manual_seed(job.seed)
        network = job.cell.build(task)
        assert network is not None  # a plan has only cells with a network
        start, used = time.perf_counter(), time.thread_time()
        sizes: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE}
        config = FitConfig(task.loss, lr=job.lr, weight_decay=WEIGHT_DECAY, seed=job.seed, **sizes, **ONE_CYCLE)
        history = fit_through(network, split, config)
        seconds, used = time.perf_counter() - start, time.thread_time() - used
        scores = {"step_seconds": used / (epochs * steps)}  # processor time, which other processes do not increase
        if job.phase == TEST:
            scores |= dict(zip(("test_loss", "test_acc"), evaluate(network, split.test, task.loss, 512), strict=True))
    return job.trial({"lr": job.lr, "steps": job.steps}, network, history, seconds, scores)


def read_inside_trial(trial: Trial) -> Trial:
    """Return a trial of a store, or raise an error if it is not one of this study."""
    check_one_of("phase", trial.key.get("phase"), (SEARCH, TEST))
    check_one_of("host", trial.key.get("host"), HOSTS)
    check_one_of("kind", trial.key.get("kind"), KINDS)
    check_int("divisor", trial.key.get("divisor"))
    check_int("trial", trial.key.get("trial"), least=0)
    if trial.key["phase"] == TEST and "test_acc" not in trial.scores:
        raise FormatError(f"a network that was evaluated must have a test accuracy: got {trial.scores}")
    return trial


def cell_of(trial: Trial) -> Cell:
    """The cell that a trial belongs to."""
    key = trial.key
    return Cell(str(key["host"]), str(key["task"]), str(key["kind"]), int(key["divisor"]))


@dataclass(frozen=True)
class InsidePlan:
    """What to compare."""

    cells: tuple[Cell, ...]
    seeds: int = 3
    steps: int = 1000
    """Approximate number of training steps of every network."""

    @classmethod
    def make(
        cls,
        hosts: Iterable[str],
        *,
        datasets: Iterable[str] = (),
        kinds: Iterable[str] = (),
        divisors: Iterable[int] = (),
        data_dir: str | None = None,
        **options: int,
    ) -> InsidePlan:
        """Check what a user requests, and fill in the defaults.

        Args:
            hosts: names of `HOSTS`.
            datasets: built-in names or paths, as `load_dataset` takes them; by default those of the host.
            kinds: names of `KINDS`; by default those that are compared by default.
            divisors: 3 for a third of the original's parameters.
            data_dir: a folder to look for data sets in first.
            options: `seeds` and `steps` of the plan.
        """
        asked, shares = [check_one_of("kind", kind, KINDS) for kind in kinds], [check_int("share", d) for d in divisors]
        given, cells = list(datasets), list[Cell]()
        for host in hosts:
            known = HOSTS[check_one_of("inside", host, HOSTS)]
            for dataset in given or known.datasets:
                task, _ = load_for(dataset, data_dir)
                known.check(host, task, dataset)
                cells.append(Cell(host, dataset, ORIGINAL, 1))
                for divisor in shares or DIVISORS:
                    wanted = asked or [kind for kind in KINDS if KINDS[kind].by_default]
                    own = [kind for kind in KINDS if getattr(KINDS[kind], known.where) and kind in wanted]
                    found = [Cell(host, dataset, kind, divisor) for kind in own if divisor > 1]
                    with torch.device("meta"):
                        cells += [cell for cell in found if cell.build(task) is not None]
        return cls(tuple(cells), **options)

    def as_config(self) -> dict[str, Any]:
        """Everything that determines the result of a trial, as JSON values."""
        fixed = {"rates": list(RATES), "batch_size": BATCH_SIZE, "weight_decay": WEIGHT_DECAY}
        return {"inside": 1, "steps": self.steps, **fixed}

    def jobs(self, cell: Cell, trials: Sequence[Trial]) -> list[InsideJob]:
        """The trials of a cell known so far: those of the rates and, once these are done, those of fresh seeds."""
        searches = [InsideJob(SEARCH, cell, index, lr, self.steps) for index, lr in enumerate(RATES)]
        done = [trial for trial in trials if trial.key["phase"] == SEARCH and cell_of(trial) == cell]
        if len(done) < len(RATES):
            return searches
        best = max(done, key=lambda trial: (trial.at_best("val_acc"), -int(trial.key["trial"])))
        lr = float(best.config["lr"])
        return [*searches, *(InsideJob(TEST, cell, index, lr, self.steps) for index in range(self.seeds))]


# ------------------------------------------------------------------------------------------------------------ its run


def compare_inside(
    folder: str | os.PathLike[str],
    plan: InsidePlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run the trials of a plan that `folder` lacks; return whether all are done now. The same call resumes.

    Args:
        folder: the run's folder, created if needed; more hosts and kinds can be added to it later.
        plan: what to compare.
        workers: where to run; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: start no trial after this time.
        observer: told how many trials of each step are done.
    """
    options: dict[str, Any] = {"workers": workers, "data_dir": data_dir, "hours": hours, "observer": observer}
    return run_rounds(folder, plan.as_config(), functools.partial(_rounds, plan), run_inside_job, **options)


def _rounds(plan: InsidePlan, store: RunStore) -> Iterator[tuple[str, list[InsideJob]]]:
    """The missing trials that are known so far, one host and data set after another."""
    for (host, _), cells in itertools.groupby(plan.cells, key=lambda cell: (cell.host, cell.dataset)):
        own = list(cells)
        while jobs := _missing(store, plan, own):
            yield f"{host}, {jobs[0].phase}", jobs


def _missing(store: RunStore, plan: InsidePlan, cells: Sequence[Cell]) -> list[InsideJob]:
    present, trials = store.present(), store.read_trials(read_inside_trial, with_weights=False)
    return [job for cell in cells for job in plan.jobs(cell, trials) if job.stored_key not in present]
