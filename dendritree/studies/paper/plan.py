"""From specs and a protocol to jobs: what a run still lacks, given what its store has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..engine.records import Row, TrialRecord
from ..engine.schema import TrialKey
from .protocol import LR_SEARCH, Protocol
from .spec import TableSpec
from .trials import Job

__all__ = ["Wanted", "chosen_lr", "missing_jobs", "run_config", "wanted_trials"]


@dataclass(frozen=True)
class Wanted:
    """A trial that belongs to a run, and the job that makes it."""

    key: TrialKey
    job: Job


def run_config(specs: Iterable[TableSpec], protocols: Iterable[Protocol]) -> dict[str, object]:
    """All that decides the results of a run, as JSON values."""
    return {
        "protocols": {protocol.name: protocol.as_config() for protocol in protocols},
        "tables": {spec.table: spec.as_config() for spec in specs},
    }


def wanted_trials(
    specs: Sequence[TableSpec], protocol: Protocol, records: Sequence[TrialRecord], trials: int | None = None
) -> list[Wanted]:
    """Every trial of a protocol that can be named now, tables in order.

    Where learning rates are searched, the trials that depend on a rate come once its search is in `records`.

    Args:
        specs: the tables.
        protocol: how they are run.
        records: what has been run so far.
        trials: trials of each row, in place of the spec's.
    """
    searched = [record for record in records if record.protocol == LR_SEARCH]
    return [wanted for spec in specs for wanted in _of_table(spec, protocol, searched, trials)]


def _of_table(
    spec: TableSpec, protocol: Protocol, searched: Sequence[TrialRecord], trials: int | None
) -> Iterator[Wanted]:
    for model in spec.models:
        for dropout in spec.dropouts if protocol.every_dropout else dict.fromkeys((0.0, model.full_dropout)):
            row = spec.row(model, dropout)
            if not protocol.lr_grid:
                yield from _of_row(spec, protocol, row, trials or spec.trials, spec.lr, spec.stack)
                continue
            for index, lr in enumerate(protocol.lr_grid):
                job = Job(protocol, row, spec.dataset, spec.out_features, index, 1, lr, LR_SEARCH)
                yield Wanted(_key(job, index), job)
            lr_found = chosen_lr(protocol, row, searched)
            if lr_found is not None:
                yield from _of_row(spec, protocol, row, trials or model.full_trials, lr_found, 1)


def _of_row(spec: TableSpec, protocol: Protocol, row: Row, trials: int, lr: float, stack: int) -> Iterator[Wanted]:
    for index in range(trials):
        first = index // stack * stack
        job = Job(protocol, row, spec.dataset, spec.out_features, first, stack, lr)
        yield Wanted(_key(job, index), job)


def _key(job: Job, index: int) -> TrialKey:
    row = job.row
    return TrialKey(job.kept_as, row.table, row.network, row.size, row.dropout, index)


def chosen_lr(protocol: Protocol, row: Row, searched: Sequence[TrialRecord]) -> float | None:
    """The learning rate of the grid with the lowest best validation loss; None until all were tried."""
    losses = {record.lr: record.at_best("val_loss") for record in searched if record.row == row}
    if set(losses) != set(protocol.lr_grid):
        return None
    return min(protocol.lr_grid, key=lambda lr: math.inf if math.isnan(losses[lr]) else losses[lr])


def missing_jobs(wanted: Iterable[Wanted], present: set[TrialKey]) -> list[Job]:
    """The jobs whose trials are not all there, each once, in order."""
    return list(dict.fromkeys(trial.job for trial in wanted if trial.key not in present))
