"""A run from beginning to end: a plan lists the trials, and those that a folder lacks are run and stored."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import torch

from dendritree.errors import FormatError, OptionError, check_int, check_one_of
from dendritree.models import create_model

from ...data import read_images
from ..engine.runner import Observer, Workers, alone_on_one_thread, run_rounds, silent
from ..engine.store import RunStore
from ..engine.trial import Trial
from .paper_trials import STUDY, PaperJob, PaperTrial, draw_trials, run_job, train_stack
from .spec import (
    LR_SEARCH,
    PAPER,
    PROTOCOLS,
    TRIALS_OF_A_DRAW,
    ModelSpec,
    Protocol,
    TableRow,
    TableSpec,
    read_specs,
    select,
)
from .stacks import stack_models


@dataclass(frozen=True)
class RunPlan:
    """What to run and how."""

    tables: tuple[TableSpec, ...]
    protocol: Protocol
    trials: int | None = None
    """Number of trials per row, overriding the spec."""
    config: dict[str, Any] = field(default_factory=dict, repr=False)
    """Everything that determines results, for all tables and protocols, so that one folder can hold them all."""

    @classmethod
    def make(
        cls,
        names: Iterable[str] = (),
        protocol: str = "paper",
        *,
        trials: int | None = None,
        draw: str | None = None,
        specs: Sequence[TableSpec] | None = None,
    ) -> RunPlan:
        """Check and resolve the user's options.

        Args:
            names: tables or tasks; all by default, but protocol `full` and draw `ten` skip the CNN unless it is named.
            protocol: `paper` or `full`.
            trials: number of trials per row, overriding the spec.
            draw: `per-trial`, `once` or `ten`, overriding that of protocol `paper`. With `ten`, by default every row
                has ten trials on each of ten draws, and only the dropouts of the paper's rows are run.
            specs: the available tables; the paper's by default.

        >>> [spec.table for spec in RunPlan.make(["binary"], trials=3).tables]
        ['binary-dendritic', 'binary-mlp']
        """
        specs = read_specs() if specs is None else specs
        protocols = dict(PROTOCOLS)
        check_one_of("protocol", protocol, protocols)
        if draw is not None:
            check_one_of("draw", draw, ("per-trial", "once", "ten"))
            if protocols[protocol].draw == "all":
                raise OptionError(f"draw is for protocol 'paper'; {protocol!r} uses all images")
            protocols[protocol] = replace(protocols[protocol], draw=draw, every_dropout=draw != "ten")
            if draw == "ten" and trials is None:
                trials = 10 * TRIALS_OF_A_DRAW
        names = list(names)
        tables = select(specs, names)
        if (protocol == "full" or draw == "ten") and not names:
            tables = [spec for spec in tables if spec.task != "cnn"]
        trials = None if trials is None else check_int("trials", trials)
        config = {
            "protocols": {each.name: each.as_config() for each in protocols.values()},
            "tables": {spec.table: spec.as_config() for spec in specs},
        }
        return cls(tuple(tables), protocols[protocol], trials, config)

    def jobs(self, trials: Sequence[PaperTrial]) -> Iterator[PaperJob]:
        """The jobs that are known so far, tables in order.

        If learning rates are searched, the jobs that depend on a rate follow once its search is complete.

        Args:
            trials: what has been run so far.
        """
        protocol = self.protocol
        searched = [trial for trial in trials if trial.protocol == LR_SEARCH]
        for spec in self.tables:
            for model in spec.models:
                for dropout in spec.dropouts if protocol.every_dropout else dict.fromkeys((0.0, model.full_dropout)):
                    row = spec.row(model, dropout)
                    what = protocol, row, spec.dataset, spec.out_features
                    lr: float | None = spec.lr
                    count, stack = self.trials or spec.trials, spec.stack
                    if protocol.lr_grid:
                        for index, rate in enumerate(protocol.lr_grid):
                            yield PaperJob(*what, index, 1, 1, rate, LR_SEARCH)
                        lr, count, stack = best_lr(protocol, row, searched), self.trials or model.full_trials, 1
                    if lr is not None:
                        for first in range(0, count, stack):
                            yield PaperJob(*what, first, stack, min(stack, count - first), lr)

    def planned(self, trials: Sequence[PaperTrial]) -> Counter[tuple[str, TableRow]]:
        """How many trials each (protocol, row) has when complete, as far as known."""
        counts: Counter[tuple[str, TableRow]] = Counter()
        for job in self.jobs(trials):
            if job.kept_as != LR_SEARCH:
                counts[job.kept_as, job.row] += job.size
        return counts


def best_lr(protocol: Protocol, row: TableRow, searched: Sequence[PaperTrial]) -> float | None:
    """The learning rate of the grid with the lowest best validation loss; None until all have been tried."""
    losses = {trial.lr: trial.at_best("val_loss") for trial in searched if trial.row == row}
    if set(losses) != set(protocol.lr_grid):
        return None
    return min(protocol.lr_grid, key=lambda lr: math.inf if math.isnan(losses[lr]) else losses[lr])


def reproduce(
    folder: str | os.PathLike[str],
    plan: RunPlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    observer: Observer = silent,
) -> None:
    """Run the trials of a plan that `folder` lacks. After an interruption or a crash, the same call resumes.

    Args:
        folder: the run's folder, created if necessary.
        plan: what to run.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: a folder to look for MNIST in first.
        observer: notified of how many trials of each table are done.
    """
    with RunStore.create_or_open(folder, plan.config) as store:
        asked = store.fact(PLANNED, {})
        asked.setdefault(plan.protocol.name, {}).update({spec.table: plan.trials for spec in plan.tables})
        store.set_fact(PLANNED, asked)
        read_images("mnist", data_dir=data_dir)  # once, before several workers need it
        options: dict[str, Any] = {"workers": workers, "data_dir": data_dir, "observer": observer}
        run_rounds(store, _rounds(plan, store), run_job, stored=lambda job: _is_stored(job, store), **options)
        _measure_reference(store, plan, data_dir)


def _rounds(plan: RunPlan, store: RunStore) -> Iterator[list[PaperJob]]:
    """The jobs known so far, until there are no more: the results of a learning rate search determine further jobs."""
    known: list[PaperJob] = []
    while (jobs := list(plan.jobs(trials_of(store)))) != known:
        yield jobs
        known = jobs


def _is_stored(job: PaperJob, store: RunStore) -> bool:
    return all(store.has(STUDY, key) for key in job.keys)


PLANNED = "planned trials"
"""Name of a fact in the store: by protocol and table, the trials per row that were asked for; null for the spec's."""


def planned_trials(store: RunStore) -> Counter[tuple[str, TableRow]]:
    """How many trials each (protocol, row) of a complete run has; of tables without a record, as in their specs."""
    trials, specs = trials_of(store), read_specs()
    asked, known = store.fact(PLANNED, {}), {spec.table for spec in specs}
    draw = store.config.get("protocols", {}).get(PAPER.name, {}).get("draw", PAPER.draw)
    counts: Counter[tuple[str, TableRow]] = Counter()
    for protocol in PROTOCOLS:
        begun = dict.fromkeys(trial.row.table for trial in trials if trial.protocol == protocol)
        for table, count in (begun | asked.get(protocol, {})).items():
            if table in known:
                own_draw = draw if protocol == PAPER.name else None
                counts |= RunPlan.make([table], protocol, trials=count, draw=own_draw, specs=specs).planned(trials)
    return counts


def trials_of(store: RunStore) -> list[PaperTrial]:
    """The trials of a run; a run of another study raises `FormatError`."""
    trials = store.trials()
    if others := {trial.study for trial in trials} - {STUDY}:
        raise FormatError(f"{store.folder} is not a run of dendritree reproduce: it has trials of {', '.join(others)}")
    return [PaperTrial.of(trial) for trial in trials]


def model_folders(trial: Trial) -> tuple[str, str, str]:
    """The folders of a trial's kept model: protocol, table, and a name for its row."""
    paper_trial = PaperTrial.of(trial)
    row = paper_trial.row
    return paper_trial.protocol, row.table, f"{row.network}-{row.size}-p{row.dropout:g}"


# --------------------------------------------------------------------------------------------- the masked reference

REFERENCE = "seconds of the masked reference"
"""Name of a fact in the store: [row, seconds per trial] for each dendritic row."""
LEAST_SECONDS = 0.5
"""How long to time a model, excluding warm-up."""


def reference_seconds_of(store: RunStore) -> dict[tuple[str, TableRow], float]:
    """Seconds that a trial of (protocol, row) would take with the paper's masked matrices, where measured."""
    return {("paper", TableRow(*row)): float(seconds) for row, seconds in store.fact(REFERENCE, [])}


def _measure_reference(store: RunStore, plan: RunPlan, data_dir: str | None) -> None:
    """Time the paper's masked matrices on a few steps of each dendritic model of this run, once."""
    if plan.protocol.name != "paper":
        return
    measured = {row: seconds for (_, row), seconds in reference_seconds_of(store).items()}
    known = {(row.network, row.size) for row in measured}
    for spec in plan.tables:
        for model in spec.models:
            if spec.task != "cnn" and "mln" in model.network and (model.network, model.size) not in known:
                seconds = reference_seconds(spec, model, plan.protocol, data_dir)
                measured |= {spec.row(model, dropout): seconds for dropout in spec.dropouts}
                store.set_fact(REFERENCE, [[list(astuple(row)), each] for row, each in measured.items()])


def reference_seconds(spec: TableSpec, model: ModelSpec, protocol: Protocol, data_dir: str | None = None) -> float:
    """Seconds that a trial of a dendritic model would take with `backend="reference"`, on one thread as in the trials.

    At least two epochs and half a second are timed and scaled to all epochs. The reference has no optimizer state for
    the masked-out weights, unlike the authors' code, so it is a little faster than theirs.
    """
    row = spec.row(model, 0.0)
    job = PaperJob(replace(protocol, epochs=1), row, spec.dataset, spec.out_features, 1, 1, 1, spec.lr)
    draw = draw_trials(spec.dataset, protocol, job.indices, data_dir)
    with alone_on_one_thread():
        torch.manual_seed(0)
        stack = stack_models([create_model(row.network, **job.arguments, backend="reference")])
        train_stack(stack, draw, job)  # warm-up
        epochs, start = 0, time.perf_counter()
        while epochs < 2 or time.perf_counter() - start < LEAST_SECONDS:
            train_stack(stack, draw, job)
            epochs += 1
        return (time.perf_counter() - start) / epochs * protocol.epochs
