"""A run from beginning to end: missing trials are run, table after table, and every result is stored immediately."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from dendritree.errors import OptionError, check_int, check_one_of

from ...data import read_images
from ..engine.runner import Observer, Workers, run_jobs, silent
from ..engine.store import RunStore
from ..engine.trial import key_text
from .paper_jobs import StoredKey, missing_jobs, run_config, wanted_trials
from .paper_trials import Job, reference_seconds, run_job
from .protocol import LR_SEARCH, PROTOCOLS, TRIALS_OF_A_DRAW, Protocol
from .records import Row, TrialRecord, stored_key
from .spec import TableSpec, read_specs, select


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
            specs: the tables to choose from; the paper's by default.

        >>> [spec.table for spec in RunPlan.make(["binary"], trials=3).tables]
        ['binary-dendritic', 'binary-mlp']
        """
        specs = read_specs() if specs is None else specs
        tables = [spec.table for spec in specs]
        if len(set(tables)) < len(tables):
            raise OptionError(f"tables must have different names: got {', '.join(tables)}")
        protocols = dict(PROTOCOLS)
        check_one_of("protocol", protocol, protocols)
        if draw is not None:
            check_one_of("draw", draw, ("per-trial", "once", "ten"))
            if protocols[protocol].draw == "all":
                raise OptionError(f"draw is for protocol 'paper': {protocol!r} uses all images")
            protocols[protocol] = replace(protocols[protocol], draw=draw, every_dropout=draw != "ten")
            if draw == "ten" and trials is None:
                trials = 10 * TRIALS_OF_A_DRAW
        names = list(names)
        chosen = select(specs, names)
        if (protocol == "full" or draw == "ten") and not names:
            chosen = [spec for spec in chosen if spec.task != "cnn"]
        trials = None if trials is None else check_int("trials", trials)
        return cls(tuple(chosen), protocols[protocol], trials, run_config(specs, protocols.values()))


def reproduce(
    folder: str | os.PathLike[str],
    plan: RunPlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    observer: Observer = silent,
) -> None:
    """Run what `folder` lacks of a plan. After an interruption or a crash, the same call resumes.

    Args:
        folder: the run's folder, created if necessary.
        plan: what to run.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: a folder to look for MNIST in first.
        observer: notified of how many trials of each table are done.
    """
    with RunStore.create_or_open(folder, plan.config) as store:
        read_images("mnist", data_dir=data_dir)  # once, before several workers need it
        with workers or Workers() as pool:
            _run(store, plan, pool, data_dir, observer)
        _measure_reference(store, plan, data_dir)


def _run(store: RunStore, plan: RunPlan, workers: Workers, data_dir: str | None, observer: Observer) -> None:
    """Run jobs until none is missing: the results of a learning rate search determine further jobs."""
    present = {(trial.study, key_text(trial.key)) for trial in store.trials()}
    told: dict[str, tuple[int, int]] = {}

    def tell(table: str) -> None:
        counts = len(wanted[table].keys() & present), len(wanted[table])
        if told.get(table) != counts:
            told[table] = counts
            observer(table, *counts)

    def keep(job: Job, records: list[TrialRecord]) -> None:
        """Store the new trials of a job: stacks are always computed completely."""
        fresh = {stored_key(record.protocol, record.row, record.index): record for record in records}
        fresh = {key: fresh[key] for key in fresh.keys() & wanted[job.row.table].keys() - present}
        store.add([record.as_trial() for record in fresh.values()])
        present.update(fresh)
        tell(job.row.table)

    while True:
        wanted = _wanted(plan, store)
        for table in wanted:
            tell(table)
        jobs = [job for trials in wanted.values() for job in missing_jobs(trials, present)]
        if not jobs:
            return
        for job, records in run_jobs(jobs, workers, run_job, data_dir=data_dir):
            keep(job, records)


def _wanted(plan: RunPlan, store: RunStore) -> dict[str, dict[StoredKey, Job]]:
    """The trials of each table that are known so far."""
    searched = records_of(store, LR_SEARCH) if plan.protocol.lr_grid else []
    return {spec.table: wanted_trials([spec], plan.protocol, searched, plan.trials) for spec in plan.tables}


def records_of(store: RunStore, protocol: str | None = None, *, with_weights: bool = False) -> list[TrialRecord]:
    """The records of a run, of one protocol or of all."""
    wanted: dict[str, Any] = {} if protocol is None else {"protocol": protocol}
    trials = store.kept_trials() if with_weights else store.trials(**wanted)
    return [TrialRecord.of(trial) for trial in trials]


def planned_trials(plan: RunPlan, store: RunStore) -> Counter[tuple[str, Row]]:
    """How many trials each (protocol, row) of a plan has when complete, as far as known."""
    jobs = [job for trials in _wanted(plan, store).values() for job in trials.values()]
    return Counter((job.kept_as, job.row) for job in jobs if job.kept_as != LR_SEARCH)


# --------------------------------------------------------------------------------------------- the masked reference

REFERENCE = "seconds of the masked reference"
"""Name of a fact in the store: [row, seconds per trial] for each dendritic row."""


def reference_seconds_of(store: RunStore) -> dict[tuple[str, Row], float]:
    """Seconds that a trial of (protocol, row) would take with the paper's masked matrices, where measured."""
    return {("paper", Row(*row)): float(seconds) for row, seconds in store.fact(REFERENCE, [])}


def _measure_reference(store: RunStore, plan: RunPlan, data_dir: str | None) -> None:
    """Time the paper's masked matrices on a few steps of each dendritic model of this run, once."""
    if plan.protocol.name != "paper":
        return
    found = {row: seconds for (_, row), seconds in reference_seconds_of(store).items()}
    known = {(row.network, row.size) for row in found}
    for spec in plan.tables:
        for model in spec.models:
            if spec.task != "cnn" and "mln" in model.network and (model.network, model.size) not in known:
                seconds = reference_seconds(spec, model, plan.protocol, data_dir)
                found |= {spec.row(model, dropout): seconds for dropout in spec.dropouts}
                store.set_fact(REFERENCE, [[list(astuple(row)), each] for row, each in found.items()])
