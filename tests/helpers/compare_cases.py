"""Small real comparisons, and what their models must be, counted by hand."""

import dataclasses
import math

from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES, Trial
from dendritree_lab.studies.fair.comparison_plan import ComparisonPlan

SMALL = {"budgets": [500], "trials": 3, "seeds": 2, "steps": 1, "test_steps": 8}
"""A comparison of a second."""


def small_plan(*tasks, **options):
    return ComparisonPlan.make(tasks or ["digits:128"], **{**SMALL, **options})


# ---------------------------------------------------------------------------------------------------------- counting


def tree_by_hand(branching):
    """Parameters of one tree: its edges, and a bias for each dendrite and the soma."""
    if isinstance(branching[-1], list):  # a soma with synapses and dendrites of its own
        own, *dendrites = branching
        return own + 1 + sum(2 + synapses for (synapses,) in dendrites)
    if len(branching) == 1:
        return branching[0] + 1
    synapses, dendrites = branching
    return dendrites * (synapses + 2) + 1


def auto_tree_by_hand(inputs):
    """Parameters of a tree of the default shape, whose dendrites have about the root of the inputs each."""
    if inputs < 4:
        return inputs + 1
    dendrites = math.ceil(inputs / math.ceil(inputs / math.isqrt(inputs)))
    return inputs + 2 * dendrites + 1


def parameters_by_hand(configuration, hidden=None):
    """Parameters of a configuration, or of the same one with other hidden layers."""
    config = configuration.arguments
    ins, outs = config["in_features"], config["out_features"]
    if configuration.network == "perceptrons":
        return (ins + 1) * outs
    hidden = hidden or config["hidden"]
    total = 0
    for inputs, neurons in zip([ins, *hidden], hidden, strict=False):
        each = inputs + 1 if configuration.network == "dense-network" else tree_by_hand(config["branching"])
        total += neurons * (each + (2 if config["norm"] else 0))
    if config.get("readout") == "dendritic":
        return total + outs * auto_tree_by_hand(hidden[-1])
    return total + outs * (hidden[-1] + 1)


def one_wider(hidden):
    """The next larger hidden layers with the same shares: equal layers, or the second half or twice the first."""
    width = hidden[0] + 1
    if len(hidden) == 1:
        return [width]
    (share,) = (share for share in (0.5, 1.0, 2.0) if round(share * hidden[0]) == hidden[1])
    return [width, round(share * width)]


# ----------------------------------------------------------------------------------------------------------- records


def trials_in(folder, **wanted):
    """What a run has, without the time it took, which no two runs share."""
    with RunStore.open_for_reading(folder) as store:
        return [dataclasses.replace(trial, seconds=0.0) for trial in store.trials(**wanted)]


def made_trial(job, *, val_loss, val_acc):
    """A trial of a job that was never done, with any curves one likes."""
    curves = dict.fromkeys(CURVES, [0.5] * len(val_loss)) | {"val_loss": val_loss, "val_acc": val_acc}
    return Trial(
        job.study, job.key, job.seed, vars(job.configuration), parameters_by_hand(job.configuration), 0.1, curves
    )
