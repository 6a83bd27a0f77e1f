"""The study of parts from beginning to end: what a folder lacks is done, and everything done is kept at once."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..engine.phases import run_rounds
from ..engine.runner import Observer, Workers, silent
from ..engine.store import RunStore
from .plan import Cell, InsideJob, InsidePlan, read_inside_trial, run_inside_job


def compare_inside(
    folder: str | os.PathLike[str],
    plan: InsidePlan,
    *,
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run what `folder` lacks of a plan; return whether all of it is there now. The same call resumes.

    Args:
        folder: the run's folder, made if needed; it may take more hosts and kinds later.
        plan: what to compare.
        workers: where; all cores of this machine by default.
        data_dir: a folder to look for data sets in first.
        hours: begin no trial after this time.
        observer: told how many trials of each step are there.
    """
    options: dict[str, Any] = {"workers": workers, "data_dir": data_dir, "hours": hours, "observer": observer}
    return run_rounds(folder, plan.as_config(), functools.partial(_rounds, plan), run_inside_job, **options)


def _rounds(plan: InsidePlan, store: RunStore) -> Iterator[tuple[str, list[InsideJob]]]:
    """The trials that can be named and are not there: hosts on data sets one after the other."""
    for (host, _), cells in itertools.groupby(plan.cells, key=lambda cell: (cell.host, cell.dataset)):
        own = list(cells)
        while jobs := _missing(store, plan, own):
            yield f"{host}, {jobs[0].phase}", jobs


def _missing(store: RunStore, plan: InsidePlan, cells: Sequence[Cell]) -> list[InsideJob]:
    present, trials = store.present(), store.read_trials(read_inside_trial, with_weights=False)
    return [job for cell in cells for job in plan.jobs(cell, trials) if job.stored_key not in present]
