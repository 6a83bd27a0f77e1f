"""Small real jobs, and what their records must be."""

import dataclasses

from effort import thorough

from dendritree_lab.studies.paper.paper_trials import Job, run_job
from dendritree_lab.studies.paper.protocol import PAPER
from dendritree_lab.studies.paper.records import Row

PROTOCOL = dataclasses.replace(PAPER, epochs=thorough(20, 100))
DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def tree_job(dropout, first=0, *, size=32, count=2, protocol=PROTOCOL):
    row = Row("binary-dendritic", "binary", "mln-binary", size, dropout)
    return Job(protocol, row, "mnist-4-9", 1, first, count, 0.05)


def some_jobs(count):
    """Jobs of one table, all different."""
    return [tree_job(DROPOUTS[i % 7], first=i // 7 * 2) for i in range(count)]


def impossible_job():
    """1024 is not a power of 3: the model raises."""
    return tree_job(0.0, size=3)


def contents(records):
    """Records without the time they took, which no two runs share."""
    return [dataclasses.replace(record, seconds=0.0) for record in records]


def alone(jobs):
    """What each job gives in this process."""
    return {job: contents(run_job(job)) for job in jobs}


class Collected:
    """What a run hands over; `on_count` is called at each number of jobs done."""

    def __init__(self, on_count=None):
        self.calls, self.on_count = [], on_count

    def __call__(self, job, records):
        self.calls.append((job, contents(records)))
        if self.on_count:
            self.on_count(len(self.calls))

    def must_be(self, expected):
        """Each job once, with the records it has alone, bit for bit."""
        assert len(self.calls) == len(expected)
        assert dict(self.calls) == expected
