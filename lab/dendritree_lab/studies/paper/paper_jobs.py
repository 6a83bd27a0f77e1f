"""From specs and a protocol to jobs: what a run still lacks, given what is in its store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .paper_trials import Job
from .protocol import LR_SEARCH, Protocol
from .records import Row, TrialRecord, stored_key
from .spec import TableSpec

StoredKey = tuple[str, str]
"""Study and key of a trial, as `RunStore.present` returns them."""


def run_config(specs: Iterable[TableSpec], protocols: Iterable[Protocol]) -> dict[str, object]:
    """Everything that determines the results of a run, as JSON values."""
    return {
        "protocols": {protocol.name: protocol.as_config() for protocol in protocols},
        "tables": {spec.table: spec.as_config() for spec in specs},
    }


def wanted_trials(
    specs: Sequence[TableSpec], protocol: Protocol, records: Sequence[TrialRecord], trials: int | None = None
) -> dict[StoredKey, Job]:
    """The key of every trial of a protocol that is known so far, and the job that produces it, tables in order.

    If learning rates are searched, the trials that depend on a rate follow once its search is in `records`.

    Args:
        specs: the tables.
        protocol: how they are run.
        records: what has been run so far.
        trials: number of trials per row, overriding the spec.
    """
    searched = [record for record in records if record.protocol == LR_SEARCH]
    return {key: job for spec in specs for key, job in _of_table(spec, protocol, searched, trials)}


def _of_table(
    spec: TableSpec, protocol: Protocol, searched: Sequence[TrialRecord], trials: int | None
) -> Iterator[tuple[StoredKey, Job]]:
    for model in spec.models:
        for dropout in spec.dropouts if protocol.every_dropout else dict.fromkeys((0.0, model.full_dropout)):
            row = spec.row(model, dropout)
            if not protocol.lr_grid:
                yield from _of_row(spec, protocol, row, trials or spec.trials, spec.lr, spec.stack)
                continue
            for index, lr in enumerate(protocol.lr_grid):
                job = Job(protocol, row, spec.dataset, spec.out_features, index, 1, lr, LR_SEARCH)
                yield stored_key(LR_SEARCH, row, index), job
            lr_found = chosen_lr(protocol, row, searched)
            if lr_found is not None:
                yield from _of_row(spec, protocol, row, trials or model.full_trials, lr_found, 1)


def _of_row(
    spec: TableSpec, protocol: Protocol, row: Row, trials: int, lr: float, stack: int
) -> Iterator[tuple[StoredKey, Job]]:
    for index in range(trials):
        job = Job(protocol, row, spec.dataset, spec.out_features, index // stack * stack, stack, lr)
        yield stored_key(job.kept_as, row, index), job


def chosen_lr(protocol: Protocol, row: Row, searched: Sequence[TrialRecord]) -> float | None:
    """The learning rate of the grid with the lowest best validation loss; None until all have been tried."""
    losses = {record.lr: record.at_best("val_loss") for record in searched if record.row == row}
    if set(losses) != set(protocol.lr_grid):
        return None
    return min(protocol.lr_grid, key=lambda lr: math.inf if math.isnan(losses[lr]) else losses[lr])


def missing_jobs(wanted: Mapping[StoredKey, Job], present: set[StoredKey]) -> list[Job]:
    """The jobs with missing trials, each once, in order."""
    return list(dict.fromkeys(job for key, job in wanted.items() if key not in present))
