"""Comparisons made up for tests: models that a search could choose, and any scores one likes, without training."""

import functools
import math

import numpy as np

from dendritree.models import create_model
from dendritree.wiring import Local, Random
from dendritree_lab.studies.engine.configuration import Configuration
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.engine.trial import CURVES, SEARCH, TEST, Trial
from dendritree_lab.studies.fair.comparison_plan import ComparisonCell, ComparisonPlan, FairJob

CONFIG = ComparisonPlan.make(["digits"], trials=2, seeds=2, steps=20, test_steps=40).as_config()


@functools.cache
def configuration_and_parameters(cell):
    """A model of the family as large as the budget, about, without a search; and its parameters."""
    task, shape, outputs = cell.task, cell.task.image_shape, cell.task.out_features
    inputs = task.in_features
    config = {"in_features": inputs, "out_features": outputs, "output": "logits", "dropout": 0.1}
    network, synapses = "dendritic-network", 9 if shape else 4
    if cell.family == "linear":
        network = "perceptrons"
    elif cell.family == "dense":
        network = "dense-network"
        config |= {"hidden": [max(1, (cell.budget - outputs) // (inputs + 1 + outputs))], "activation": "relu"}
    else:
        branching = [synapses, 2] if cell.family == "tree" else [synapses]
        of_neuron = 2 * synapses + 5 if cell.family == "tree" else synapses + 1
        wiring = Local(window=5, image_shape=shape) if shape else Random()
        config |= {"hidden": [(cell.budget - outputs) // (of_neuron + outputs)], "branching": branching}
        config |= {"wiring": wiring, "activation": "leaky_relu"}
    model = create_model(network, **config, device="meta")
    return Configuration(network, config, 0.01), sum(parameter.numel() for parameter in model.parameters())


def made_up_cell(task, family, budget, scores, *, searched=2, parameters=None):
    """The trials of one cell: its search, and one evaluated model per score (an accuracy, or an RMSE)."""
    cell = ComparisonCell(Task.parse(task), 0 if family == "linear" else budget, family)
    records = []
    for phase, numbers in ((SEARCH, [0.5] * searched), (TEST, scores)):
        for index, score in enumerate(numbers):
            configuration, real = configuration_and_parameters(cell)
            job = FairJob(phase, cell, index, configuration, 20)
            accuracy, loss = (math.nan, score**2) if cell.task.metric == "rmse" else (score, 1.0)
            scores = {} if phase == SEARCH else {"test_loss": loss, "test_acc": accuracy}
            curves, seconds = {curve: [0.5] for curve in CURVES}, 0.5 + real / 10_000
            size = parameters or real
            records.append(Trial(job.study, job.key, job.seed, vars(configuration), size, seconds, curves, scores))
    return records


def around(mean, sd=0.002, seeds=5):
    """Scores with that mean, to the last bits, and that sample deviation."""
    steps = np.linspace(-1, 1, seeds) if seeds > 1 else np.zeros(1)
    return [mean + sd * step for step in (steps / steps.std(ddof=1) if seeds > 1 else steps)]


MEANS = {
    "mnist": {
        "linear": {0: 0.921},
        "tree": {4000: 0.974, 9000: 0.981, 18000: 0.9836, 36000: 0.9852},
        "sparse": {4000: 0.976, 9000: 0.982, 18000: 0.9845, 36000: 0.986},
        "dense": {4000: 0.902, 9000: 0.939, 18000: 0.960, 36000: 0.973, 72000: 0.980, 144000: 0.9842},
    },
    "mnist:128": {
        "linear": {0: 0.768},
        **{family: {9000: mean} for family, mean in (("tree", 0.781), ("sparse", 0.780), ("dense", 0.716))},
    },
    "mnist:1000": {
        "linear": {0: 0.882},
        **{family: {9000: mean} for family, mean in (("tree", 0.914), ("sparse", 0.912), ("dense", 0.799))},
    },
    "mnist-pairs": {
        "linear": {0: 0.31},
        "tree": {9000: 0.887, 18000: 0.923, 36000: 0.939},
        "sparse": {9000: 0.874, 18000: 0.906, 36000: 0.927},
        "dense": {9000: 0.15, 18000: 0.46, 36000: 0.825},
    },
    "california-housing": {
        "linear": {0: 0.72},
        "tree": {1000: 0.548, 2000: 0.531, 4000: 0.524, 8000: 0.519},
        "sparse": {1000: 0.551, 2000: 0.536, 4000: 0.527, 8000: 0.523},
        "dense": {1000: 0.555, 2000: 0.538, 4000: 0.525, 8000: 0.516},
    },
}
"""Scores as they may well be."""


def made_up_run(tasks=tuple(MEANS), seeds=5):
    """The trials of a run of these tasks."""
    return [
        record
        for task in tasks
        for family, budgets in MEANS[task].items()
        for budget, mean in budgets.items()
        for record in made_up_cell(task, family, budget, around(mean, 0.08 * min(mean, 1 - mean) ** 1.2, seeds))
    ]
