"""The families of models, and what a search may choose in each: learning rate, dropout, width and all the rest.

The width is never chosen: it is the largest that the parameter budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import OptionError
from ...models.sizing import fill_budget
from ...wiring import Local, Random, Wiring
from ..engine.records import TrialRecord
from .tasks import Task

__all__ = ["FAMILIES", "Choice", "Family", "draw_common", "pick"]

LEARNING_RATES = (0.002, 0.05)
"""Drawn from here, evenly on a logarithmic scale, for every family."""
WEIGHT_DECAYS = (0.0, 0.05)
ATTEMPTS = 200


@dataclass(frozen=True)
class Choice:
    """A model and how fast it learns: what a search draws, and what is trained again on fresh seeds."""

    network: str
    """Name in the model registry."""
    config: Mapping[str, Any]
    """Arguments of `create_model`."""
    lr: float
    weight_decay: float = 0.0
    """Of AdamW."""
    rewired: float = 0.0
    """Share of a neuron's synapses that moves after the first epoch; 0 for fixed ones."""

    @property
    def dropout(self) -> float:
        """The dropout among the arguments."""
        return float(self.config.get("dropout", 0.0))

    def as_stored(self) -> dict[str, Any]:
        """All but network and learning rate, as a record keeps it."""
        return {**self.config, "fit.weight_decay": self.weight_decay, "fit.rewired": self.rewired}

    @classmethod
    def of(cls, record: TrialRecord) -> Choice:
        """The choice that a record tells of."""
        config = dict(record.model_config)
        weight_decay, rewired = config.pop("fit.weight_decay", 0.0), config.pop("fit.rewired", 0.0)
        return cls(record.row.network, config, record.lr, weight_decay, rewired)

    def difference(self, other: Choice) -> str:
        """What another one has instead.

        >>> Choice("mlp", {"hidden": 4, "dropout": 0.1}, 0.01).difference(Choice("mlp", {"hidden": 5}, 0.01))
        'dropout: 0.1 -> nothing; hidden: 4 -> 5'
        """
        ours, theirs = ({"network": of.network, "lr": of.lr, **of.as_stored()} for of in (self, other))
        names = sorted(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))
        return "; ".join(f"{name}: {ours.get(name, 'nothing')} -> {theirs.get(name, 'nothing')}" for name in names)


@dataclass(frozen=True)
class Family:
    """A kind of model, and how to draw one."""

    title: str
    network: str
    draw: Callable[[np.random.Generator, Task], dict[str, Any]]
    """Arguments but for the sizes. `shape` among them is the share of each hidden layer in the width, `rewired` the
    share of synapses that moves."""

    def choose(self, random: np.random.Generator, task: Task, in_features: int, budget: int) -> Choice:
        """A random choice whose parameters are as many as the budget allows, never more."""
        lowest, highest = (math.log(rate) for rate in LEARNING_RATES)
        lr = float(f"{math.exp(random.uniform(lowest, highest)):.2g}")
        weight_decay = float(pick(random, *WEIGHT_DECAYS))
        sizes: dict[str, Any] = {"in_features": in_features, "out_features": task.out_features, "output": "logits"}
        for _ in range(ATTEMPTS):
            config = sizes | self.draw(random, task)
            shape, rewired = config.pop("shape", None), config.pop("rewired", 0.0)
            if shape is None:
                return Choice(self.network, config, lr, weight_decay)
            hidden = fill_budget(self.network, config, shape, budget)
            if hidden is not None:
                return Choice(self.network, config | {"hidden": hidden}, lr, weight_decay, rewired)
        raise OptionError(
            f"a budget must leave room for two neurons: {budget} parameters do not, from {in_features} inputs to "
            f"{task.out_features} outputs as {self.title}"
        )


# --------------------------------------------------------------------------------------------------- what is drawn


def pick(random: np.random.Generator, *options: Any) -> Any:
    """One of the options; one given twice is twice as likely."""
    return options[int(random.integers(len(options)))]


def draw_common(random: np.random.Generator) -> dict[str, Any]:
    """What every family with hidden neurons chooses alike."""
    return {"dropout": pick(random, 0.0, 0.0, 0.0, 0.1), "norm": pick(random, None, "batch")}


def _local(random: np.random.Generator, task: Task, per_dendrite: int) -> Wiring:
    """Windows that hold a dendrite's synapses, close or with room."""
    least = math.isqrt(per_dendrite - 1) + 1
    assert task.image_shape is not None
    most = max(least, min(task.image_shape[1:]))
    window = min(least + int(random.integers(0, 6)), most)
    per, place = pick(random, ("dendrite", "near"), ("dendrite", "free"), ("neuron", "near"))
    return Local(window=window, per=per, place=place, image_shape=task.image_shape)


def _wiring(random: np.random.Generator, task: Task, per_dendrite: int) -> Wiring:
    return Random() if task.image_shape is None else _local(random, task, per_dendrite)


def _synapses(random: np.random.Generator, task: Task) -> int:
    """Synapses of a dendrite: as many as a small patch of an image, or a few columns of a table."""
    return int(pick(random, 9, 16, 25, 36, 49) if task.image_shape is not None else pick(random, 2, 3, 4, 6, 8, 12, 16))


def _layers(random: np.random.Generator, task: Task) -> tuple[float, ...]:
    """Hidden layers: one for images, whose windows a second one could not see; one or two for tables."""
    return (1.0,) if task.image_shape is not None else pick(random, (1.0,), (1.0,), (1.0, 1.0), (1.0, 0.5))


def _branching(random: np.random.Generator, task: Task, synapses: int) -> list[Any]:
    """A soma with dendrites alone, or one with dendrites and synapses of its own: a bypass."""
    if random.random() < 0.5:
        few = task.out_features <= 20  # many outputs make read-outs dear, and somas of many dendrites cheap
        return [synapses, int(pick(random, *((2, 2, 3, 4) if few else (2, 4, 6, 8))))]
    dendrite = [max(2, round(synapses * float(pick(random, 0.3, 0.5, 1.0))))]
    return [synapses, *[dendrite] * int(pick(random, 1, 1, 2))]


def _tree(random: np.random.Generator, task: Task) -> dict[str, Any]:
    synapses = _synapses(random, task)
    return draw_common(random) | {
        "shape": _layers(random, task),
        "branching": _branching(random, task, synapses),
        "wiring": _wiring(random, task, synapses),
        "rewired": pick(random, 0.0, 0.3, 0.3, 0.3),
    }


def _sparse(random: np.random.Generator, task: Task) -> dict[str, Any]:
    synapses = _synapses(random, task)
    return draw_common(random) | {
        "shape": _layers(random, task),
        "branching": [synapses],
        "wiring": _wiring(random, task, synapses),
        "rewired": pick(random, 0.0, 0.3, 0.3, 0.3),
        "activation": pick(random, "leaky_relu", "leaky_relu", "tanh"),
    }


def _dense(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return draw_common(random) | {
        "shape": pick(random, (1.0,), (1.0,), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0)),
        "activation": pick(random, "relu", "relu", "leaky_relu", "tanh"),
    }


def _linear(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return {"dropout": pick(random, 0.0, 0.0, 0.0, 0.1)}


FAMILIES = {
    "tree": Family("dendritic trees of two levels", "dendritic-network", _tree),
    "sparse": Family("sparse perceptrons: the same wiring, no tree", "dendritic-network", _sparse),
    "dense": Family("dense MLP", "dense-network", _dense),
    "linear": Family("perceptrons: one linear unit per output", "perceptrons", _linear),
}
"""Families by name. `sparse`, `dense` and `linear` are the controls of `tree`."""
