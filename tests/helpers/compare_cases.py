"""Small real comparisons, and trials of them that were never done."""

import dataclasses

from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES, Trial
from dendritree_lab.studies.fair.comparison_plan import ComparisonPlan
from dendritree_lab.studies.fair.families import OURS

SMALL = {"budgets": [500], "trials": 3, "seeds": 2, "steps": 1, "test_steps": 8}
"""A comparison of a second."""


def small_plan(*tasks, **options):
    return ComparisonPlan.make(tasks or ["digits:128"], **{"families": OURS, **SMALL, **options})


def trials_in(folder, **wanted):
    """What a run has, without the time it took, which no two runs share."""
    with RunStore.open_for_reading(folder) as store:
        return [dataclasses.replace(trial, seconds=0.0) for trial in store.trials(**wanted)]


def made_trial(job, *, val_loss, val_acc):
    """A trial of a job that was never done, with any curves one likes."""
    curves = dict.fromkeys(CURVES, [0.5] * len(val_loss)) | {"val_loss": val_loss, "val_acc": val_acc}
    return Trial(job.study, job.key, job.seed, vars(job.configuration), 500, 0.1, curves)
