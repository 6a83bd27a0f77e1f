"""The other dendritic neurons, as the hidden layer of a network with a linear read-out: what a search may choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from .families import FAMILIES, Family, draw_common, pick
from .tasks import Task

__all__ = ["ALL_FAMILIES", "RIVALS"]


def _network(random: np.random.Generator, neuron: str, **options: Any) -> dict[str, Any]:
    return draw_common(random) | {"shape": (1.0,), "neuron": neuron, "options": options}


def _ktree(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return _network(
        random,
        "ktree",
        branching=pick(random, 2, 4, 8, 16, 32),
        wiring=pick(random, "original", "random"),
    )


def _denn(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return _network(random, "denn", branches=pick(random, 2, 3, 4, 8))


def _dnm(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return _network(
        random,
        "dnm",
        dendrites=pick(random, 1, 1, 2, 4),
        k=pick(random, 1.0, 3.0, 5.0),
        soma=pick(random, "sigmoid", "log"),
    )


def _dmnn(random: np.random.Generator, task: Task) -> dict[str, Any]:
    return _network(
        random,
        "dmnn",
        dendrites=pick(random, 1, 1, 2, 4),
        temperature=pick(random, None, 0.1, 0.3, 1.0),
        scale=pick(random, 1.0, 10.0),
        input_range=list(task.input_range),  # boxes elsewhere would have to travel first
    )


def _dann(random: np.random.Generator, task: Task) -> dict[str, Any]:
    shape = task.image_shape
    fields = ("random",) if shape is None else ("random", "local", "global")
    return _network(
        random,
        "dann",
        dendrites=pick(random, 2, 4, 8, 16),
        field=pick(random, *fields),
        image_shape=None if shape is None else list(shape),  # as a file has it
    )


RIVALS = {
    "ktree": Family("k-trees over all inputs, with a linear soma for each output", "neuron-network", _ktree),
    "denn": Family("DENN: neurons that take the maximum of their branches", "neuron-network", _denn),
    "dnm": Family("DNM: sums of products of sigmoid synapses", "neuron-network", _dnm),
    "dmnn": Family("DMNN: morphological neurons, boxes as dendrites", "neuron-network", _dmnn),
    "dann": Family("dANN: somata with dendrites of 16 synapses", "neuron-network", _dann),
}
"""Families of other authors by name."""

ALL_FAMILIES = FAMILIES | RIVALS
"""All that can be compared, in the order they are read."""
