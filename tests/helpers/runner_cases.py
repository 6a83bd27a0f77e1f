"""Small real jobs, and what their trials must be."""

import dataclasses

from effort import thorough

from dendritree_lab.studies.engine.runner import run_jobs
from dendritree_lab.studies.paper.paper_trials import PaperJob, run_job
from dendritree_lab.studies.paper.spec import PAPER, TableRow

PROTOCOL = dataclasses.replace(PAPER, epochs=thorough(20, 100))
DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def tree_job(dropout, first=0, *, size=32, count=2, protocol=PROTOCOL):
    row = TableRow("binary-dendritic", "binary", "mln-binary", size, dropout)
    return PaperJob(protocol, row, "mnist-4-9", 1, first, count, count, 0.05)


def some_jobs(count):
    """Jobs of one table, all different."""
    return [tree_job(DROPOUTS[i % 7], first=i // 7 * 2) for i in range(count)]


def impossible_job():
    """1024 is not a power of 3: the model raises."""
    return tree_job(0.0, size=3)


def contents(trials):
    """Trials without the time they took, which no two runs share."""
    return [dataclasses.replace(trial, seconds=0.0) for trial in trials]


def alone(jobs):
    """What each job gives in this process."""
    return {job: contents(run_job(job)) for job in jobs}


def collect(jobs, pool, on_count=None):
    """Run jobs; return (job, trials) in the order of their results. `on_count` gets each number of jobs done."""
    results = []
    for job, trials in run_jobs(jobs, pool, run_job):
        results.append((job, contents(trials)))
        if on_count:
            on_count(len(results))
    return results
