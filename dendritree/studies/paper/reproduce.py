"""A run from beginning to end: what is lacking is done, table after table, and everything done is kept at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...data import read_images
from ...errors import OptionError, check_int, check_one_of
from ..engine.records import Row, TrialRecord
from ..engine.runner import Pool, run_jobs
from ..engine.schema import TrialKey
from ..engine.store import RunStore
from .plan import missing_jobs, run_config, wanted_trials
from .protocol import LR_SEARCH, PROTOCOLS, Protocol
from .spec import TableSpec, read_specs, select
from .timing import reference_seconds
from .trials import Job, run_job

__all__ = ["Observer", "RunPlan", "planned_trials", "reproduce"]


@dataclass(frozen=True)
class RunPlan:
    """What to run and how."""

    tables: tuple[TableSpec, ...]
    protocol: Protocol
    trials: int | None = None
    """Trials of each row, in place of the spec's."""
    config: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that decides results, of all tables and protocols, so that one folder can hold them all."""

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
        """Check and resolve what a user asks for.

        Args:
            names: tables or tasks; all for none, but protocol `full` leaves out the CNN unless asked for.
            protocol: `paper` or `full`.
            trials: trials of each row, in place of the spec's.
            draw: `per-trial` or `once`, in place of protocol `paper`'s.
            specs: the tables to choose from; the paper's by default.

        >>> [spec.table for spec in RunPlan.make(["binary"], trials=3).tables]
        ['binary-dendritic', 'binary-mlp']
        """
        specs = read_specs() if specs is None else specs
        tables = [spec.table for spec in specs]
        if len(set(tables)) < len(tables):
            raise OptionError(f"tables must have names of their own: got {', '.join(tables)}")
        protocols = dict(PROTOCOLS)
        check_one_of("protocol", protocol, protocols)
        if draw is not None:
            check_one_of("draw", draw, ("per-trial", "once"))
            if protocols[protocol].draw == "all":
                raise OptionError(f"draw is for protocol 'paper': {protocol!r} uses all images")
            protocols[protocol] = replace(protocols[protocol], draw=draw)
        names = list(names)
        chosen = select(specs, names)
        if protocol == "full" and not names:
            chosen = [spec for spec in chosen if spec.task != "cnn"]
        trials = None if trials is None else check_int("trials", trials)
        return cls(tuple(chosen), protocols[protocol], trials, run_config(specs, protocols.values()))


class Observer:
    """What a run tells while it goes on; a progress bar overrides these. All are called in the process that asked."""

    def planned(self, totals: dict[str, int], done: dict[str, int]) -> None:
        """Trials of each table in all and done so far; again when learning rates are known."""

    def stored(self, job: Job, trials: int) -> None:
        """So many new trials are in the store."""

    def table_done(self, spec: TableSpec, store: RunStore) -> None:
        """Every trial of a table that was asked for is in the store."""


def reproduce(
    folder: str | os.PathLike[str],
    plan: RunPlan,
    *,
    pool: Pool | None = None,
    data_dir: str | None = None,
    observer: Observer | None = None,
) -> None:
    """Run what `folder` lacks of a plan. Interrupted, killed or done, the same call goes on from what is there.

    Args:
        folder: the run's folder, made if needed.
        plan: what to run.
        pool: where; all cores of this machine by default.
        data_dir: a folder to look for MNIST in first.
        observer: told what happens.
    """
    observer = observer or Observer()
    data_dir = None if data_dir is None else str(Path(data_dir).resolve())  # workers may have another folder
    with RunStore.create_or_open(folder, plan.config) as store:
        read_images("mnist", data_dir=data_dir)  # once, before several workers ask for it
        with pool or Pool() as workers:
            _Run(store, plan, workers, data_dir, observer).go()
        _measure_reference(store, plan, data_dir)


class _Run:
    """One pass through the tables of a plan."""

    def __init__(self, store: RunStore, plan: RunPlan, pool: Pool, data_dir: str | None, observer: Observer) -> None:
        self.store, self.plan, self.pool = store, plan, pool
        self.data_dir, self.observer = data_dir, observer
        self.present = store.present()
        self.reported: set[str] = set()

    def go(self) -> None:
        """Do jobs until none is missing: what a search of learning rates finds asks for more."""
        self._refresh()
        while jobs := missing_jobs((w for trials in self.wanted.values() for w in trials), self.present):
            run_jobs(jobs, self.pool, self._keep, data_dir=self.data_dir, work=run_job)
            self._refresh()
        self._tell_tables_done()

    def _refresh(self) -> None:
        plan, store = self.plan, self.store
        searched = store.records(LR_SEARCH) if plan.protocol.lr_grid else []
        self.wanted = {spec.table: wanted_trials([spec], plan.protocol, searched, plan.trials) for spec in plan.tables}
        self.keys = {table: {w.key for w in trials} for table, trials in self.wanted.items()}
        totals = {table: len(keys) for table, keys in self.keys.items()}
        self.observer.planned(totals, {table: len(keys & self.present) for table, keys in self.keys.items()})

    def _keep(self, job: Job, records: list[TrialRecord]) -> None:
        """Store what is new of a job: stacks are computed whole, whatever is wanted of them."""
        keys = self.keys[job.row.table]
        fresh = [r for r in records if (key := TrialKey.of(r)) in keys and key not in self.present]
        self.store.add(fresh)
        self.present |= {TrialKey.of(record) for record in fresh}
        self.observer.stored(job, len(fresh))
        if not self.plan.protocol.lr_grid:
            self._tell_tables_done()

    def _tell_tables_done(self) -> None:
        for spec in self.plan.tables:
            if spec.table not in self.reported and self.keys[spec.table] <= self.present:
                self.reported.add(spec.table)
                self.observer.table_done(spec, self.store)


def planned_trials(plan: RunPlan, store: RunStore) -> dict[tuple[str, Row], int]:
    """How many trials each (protocol, row) of a plan has in the end, as far as it is known."""
    searched = store.records(LR_SEARCH) if plan.protocol.lr_grid else []
    counts: dict[tuple[str, Row], int] = {}
    for wanted in wanted_trials(plan.tables, plan.protocol, searched, plan.trials):
        if wanted.job.kept_as != LR_SEARCH:
            key = (wanted.job.kept_as, wanted.job.row)
            counts[key] = counts.get(key, 0) + 1
    return counts


def _measure_reference(store: RunStore, plan: RunPlan, data_dir: str | None) -> None:
    """Time the paper's masked matrices on a few steps of each dendritic model of this run, once."""
    if plan.protocol.name != "paper":
        return
    known = {(row.network, row.size) for row in store.reference_seconds}
    for spec in plan.tables:
        for model in spec.models:
            if spec.task != "cnn" and "mln" in model.network and (model.network, model.size) not in known:
                seconds = reference_seconds(spec, model, plan.protocol, data_dir)
                store.set_reference_seconds({spec.row(model, dropout): seconds for dropout in spec.dropouts})
