"""The families of models, and what a search draws for each: learning rate, weight decay, dropout, trees, wiring.

The width is never drawn: it is the largest that the parameter budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dendritree.errors import OptionError
from dendritree.models import create_model
from dendritree.models.conv_network import LEAST_DEPTH
from dendritree.models.sizing import fill_budget, parameters_of
from dendritree.neurons.families import RESERVED, NeuronFamily, neuron_family, neuron_names
from dendritree.wiring import Local, Random, Tied, Wiring

from ..engine.configuration import Configuration
from ..engine.task import Task

LEARNING_RATES = (0.002, 0.05)
"""The range of learning rates of networks with one or two hidden layers."""
STAGE_RATES = (0.005, 0.05)
"""The range of learning rates of all stacks of stages."""
WEIGHT_DECAYS = (0.0, 0.05)
ACTIVATIONS = ("relu", "relu", "leaky_relu", "tanh")
"""Activations of all families of this library; ReLU is twice as likely as the others."""
WIDE_IMAGE = 20
"""Side of an image, in pixels, from which stacks have two stages or more."""
SHARED_BY = (1, 9, 16, 25)
"""How many neurons share a tied tree: squares, or 1 if every neuron has its own."""
ATTEMPTS = 200


@dataclass(frozen=True)
class Family:
    """A kind of model, and how to draw one."""

    name: str
    """Short enough for a column or the end of a line."""
    title: str
    network: str
    draw: Callable[[np.random.Generator, Task], dict[str, Any]]
    """Draws all arguments but the sizes. Among them, `shape` is the relative width of each hidden layer, and
    `rewired` the fraction of synapses that move."""
    learning_rates: tuple[float, float] = LEARNING_RATES
    """The range of its learning rates, drawn uniformly on a logarithmic scale."""

    def configure(self, random: np.random.Generator, task: Task, budget: int) -> Configuration:
        """Draw a configuration with as many parameters as the budget allows, never more."""
        lowest, highest = (math.log(rate) for rate in self.learning_rates)
        lr = float(f"{math.exp(random.uniform(lowest, highest)):.2g}")
        weight_decay = float(_pick(random, *WEIGHT_DECAYS))
        sizes: dict[str, Any] = {"in_features": task.in_features, "out_features": task.out_features, "output": "logits"}
        smallest = []  # sizes of the drawn models with two neurons
        for _ in range(ATTEMPTS):
            arguments = sizes | self.draw(random, task)
            shape, rewired = arguments.pop("shape", None), arguments.pop("rewired", 0.0)
            if shape is None:
                return Configuration(self.network, arguments, lr, weight_decay)
            hidden = fill_budget(self.network, arguments, shape, budget)
            if hidden is not None:
                return Configuration(self.network, arguments | {"hidden": hidden}, lr, weight_decay, rewired)
            narrow = [max(1, round(2 * share)) for share in shape]
            smallest.append(parameters_of(create_model(self.network, **arguments, hidden=narrow, device="meta")))
        enough = sorted(smallest)[ATTEMPTS // 20]  # so that all configurations of a search can be drawn
        raise OptionError(
            f"a budget must leave room for two neurons: got {budget} parameters for {task.in_features} inputs, "
            f"{task.out_features} outputs and {self.title}; the least is {enough:,}"
        )


def small_budget(task: Task) -> int:
    """A budget that leaves room for every family: five weights per input, rounded up, and at least 1,000.

    >>> small_budget(Task.parse("digits")), small_budget(Task.parse("cifar10"))
    (1000, 16000)
    """
    least = max(1000, 5 * (task.in_features + task.out_features))
    step = int(10 ** (len(str(least)) - 2))
    return -(-least // step) * step


# --------------------------------------------------------------------------------------------------- what is drawn


def _pick(random: np.random.Generator, *options: Any) -> Any:
    """One of the options at random; an option given twice is twice as likely."""
    return options[int(random.integers(len(options)))]


def _common(random: np.random.Generator) -> dict[str, Any]:
    """The options that all families with hidden neurons share."""
    return {"dropout": _pick(random, 0.0, 0.0, 0.0, 0.1), "norm": _pick(random, None, "batch")}


def _wiring(random: np.random.Generator, task: Task, per_dendrite: int) -> Wiring:
    """Random wiring; for images, windows that fit a dendrite's synapses, tightly or with room to spare."""
    if task.image_shape is None:
        return Random()
    least = math.isqrt(per_dendrite - 1) + 1
    most = max(least, min(task.image_shape[1:]))
    window = min(least + int(random.integers(0, 6)), most)
    per, place = _pick(random, ("dendrite", "near"), ("dendrite", "free"), ("neuron", "near"))
    return Local(window=window, per=per, place=place, image_shape=task.image_shape)


def _synapses(random: np.random.Generator, task: Task) -> int:
    """Synapses per dendrite: as many as a small patch of an image, or a few columns of a table."""
    return int(
        _pick(random, 9, 16, 25, 36, 49) if task.image_shape is not None else _pick(random, 2, 3, 4, 6, 8, 12, 16)
    )


def _layers(random: np.random.Generator, task: Task) -> tuple[float, ...]:
    """Hidden layers: one for images, because a second one could not read windows; one or two for tables."""
    return (1.0,) if task.image_shape is not None else _pick(random, (1.0,), (1.0,), (1.0, 1.0), (1.0, 0.5))


def _few_outputs(task: Task) -> bool:
    """Whether read-outs are cheap; with many outputs, the best neurons are few and have many dendrites."""
    return task.out_features <= 20


def _branching(random: np.random.Generator, task: Task, synapses: int) -> list[Any]:
    """A soma with dendrites only, or one with dendrites and synapses of its own (a bypass)."""
    if random.random() < 0.5:
        return [synapses, int(_pick(random, *((2, 2, 3, 4) if _few_outputs(task) else (2, 4, 6, 8))))]
    dendrite = [max(2, round(synapses * float(_pick(random, 0.3, 0.5, 1.0))))]
    return [synapses, *[dendrite] * int(_pick(random, 1, 1, 2))]


def _sparse(random: np.random.Generator, task: Task) -> dict[str, Any]:
    return _wired(random, task, lambda synapses: [synapses])


def _tree(random: np.random.Generator, task: Task) -> dict[str, Any]:
    return _wired(random, task, lambda synapses: _branching(random, task, synapses))


def _tied(random: np.random.Generator, task: Task) -> dict[str, Any]:
    """Copies of a dendrite at places that overlap, touch or lie apart, in neurons that may be copies too."""
    channels, height, width = _image(task)
    window = min(int(_pick(random, 3, 4, 5, 6, 7)), height - 2, width - 2)
    synapses = min(_synapses(random, task), channels * window**2)
    copies, stride = int(_pick(random, 4, 9, 16, 25)), int(random.integers(1, 5))
    shared_by = int(_pick(random, *SHARED_BY)) if _few_outputs(task) else 1  # sharing neurons have separate read-outs
    wiring, copies = Tied.fitted(_image(task), window=window, stride=stride, copies=copies, shared_by=shared_by)
    return _common(random) | {
        "shape": (1.0,),
        "branching": [synapses, copies],
        "wiring": wiring,
        "activation": _pick(random, *ACTIVATIONS),
        "rewired": _pick(random, 0.0, 0.3),
    }


def _tied_linear(random: np.random.Generator, task: Task) -> dict[str, Any]:
    return _tied(random, task) | {"linear_dendrites": True}


def _stages(stage: str) -> Callable[[np.random.Generator, Task], dict[str, Any]]:
    """Draw a stack of stages, in the same way for all kinds, except for the pooling of plain convolutions. A dendritic
    stage has trees of depth 2 or 3; a plain stage has one or two convolutions."""

    def draw(random: np.random.Generator, task: Task) -> dict[str, Any]:
        shape = _image(task)
        side = min(n for n in shape[1:] if n > 1)
        depth = int(
            _pick(random, *((1, 2) if side < WIDE_IMAGE else (2, 3) if side < 32 else (3,) if side < 64 else (4,)))
        )
        growth = float(_pick(random, 1.0, 1.4, 2.0))
        first = int(_pick(random, 3, 5)) if shape[0] == 1 else 3
        return {
            "stage": stage,
            "shape": tuple(round(growth**number, 2) for number in range(depth)),
            "image_shape": list(shape),  # as read from a file
            "kernel_size": [first, *[3] * (depth - 1)],
            "places": int(_pick(random, 2, 3)) if stage == "plain" else 3,
            "depth": LEAST_DEPTH.get(stage, 0) + int(_pick(random, 0, 1)),
            "activation": _pick(random, "relu", "silu"),
            "pool": int(_pick(random, 2, 3)),
            "dropout": float(_pick(random, 0.0, 0.0, 0.0, 0.1)),
        }

    return draw


def _image(task: Task) -> tuple[int, int, int]:
    assert task.image_shape is not None  # a plan has checked it
    return task.image_shape


def _wired(random: np.random.Generator, task: Task, tree: Callable[[int], list[Any]]) -> dict[str, Any]:
    """Neurons with few synapses each; `tree` gives the branching for a number of synapses."""
    synapses = _synapses(random, task)
    return _common(random) | {
        "shape": _layers(random, task),
        "branching": tree(synapses),
        "wiring": _wiring(random, task, synapses),
        "rewired": _pick(random, 0.0, 0.3, 0.3, 0.3),
        "activation": _pick(random, *ACTIVATIONS),
    }


def _dense(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return _common(random) | {
        "shape": _pick(random, (1.0,), (1.0,), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0)),
        "activation": _pick(random, *ACTIVATIONS),
    }


def _linear(random: np.random.Generator, task: Task) -> dict[str, Any]:
    del task
    return {"dropout": _pick(random, 0.0, 0.0, 0.0, 0.1)}


# ---------------------------------------------------------------- registered neurons: a hidden layer, a linear read-out


def _neurons(neuron: NeuronFamily) -> Callable[[np.random.Generator, Task], dict[str, Any]]:
    """Draw a value for each option of a neuron; `image_shape` and `input_range` are those of the data."""

    def draw(random: np.random.Generator, task: Task) -> dict[str, Any]:
        choices = neuron.choices if task.image_shape is None else {**neuron.choices, **neuron.image_choices}
        options = {name: _pick(random, *values) for name, values in choices.items()}
        for name in ("image_shape", "input_range"):
            if name in neuron.options:
                value = getattr(task, name)
                options[name] = None if value is None else list(value)  # as read from a file
        return _common(random) | {"shape": (1.0,), "neuron": neuron.name, "options": options}

    return draw


class Families(Mapping[str, Family]):
    """Families by name: `OWN`, then registered neurons. Those of an installed package are imported on
    first use."""

    def __init__(self, ours: Mapping[str, Family]) -> None:
        self._ours = dict(ours)

    def __getitem__(self, name: str) -> Family:
        if name in self._ours:
            return self._ours[name]
        if name not in neuron_names():
            raise KeyError(name)
        neuron = neuron_family(name)
        return Family(neuron.label, neuron.title, "neuron-network", _neurons(neuron))

    def __iter__(self) -> Iterator[str]:
        yield from self._ours
        yield from neuron_names()

    def __len__(self) -> int:
        return sum(1 for _ in self)


OWN = {
    "tree": Family("trees", "dendritic trees of two levels", "dendritic-network", _tree),
    "sparse": Family("sparse", "sparse perceptrons: the same wiring, no tree", "dendritic-network", _sparse),
    "dense": Family("dense", "dense MLP", "dense-network", _dense),
    "linear": Family("linear", "perceptrons: one linear unit per output", "perceptrons", _linear),
    "tied": Family("tied", "trees whose dendrites share weights", "dendritic-network", _tied),
    "tied-linear": Family("tied linear", "trees with shared linear dendrites", "dendritic-network", _tied_linear),
    "deep": Family("deep", "stages of neurons with tied dendrites", "conv-network", _stages("dendritic"), STAGE_RATES),
    "deep-linear": Family(
        "deep linear", "stages of neurons with tied linear dendrites", "conv-network", _stages("linear"), STAGE_RATES
    ),
    "cnn": Family("CNN", "stages of convolutions and max-pooling", "conv-network", _stages("plain"), STAGE_RATES),
    "separable": Family("separable", "depthwise-separable stages", "conv-network", _stages("separable"), STAGE_RATES),
    "blueprint": Family("blueprint", "blueprint-separable stages", "conv-network", _stages("blueprint"), STAGE_RATES),
}
RESERVED.update(OWN)
FAMILIES = Families(OWN)
"""Families by name, in reading order. `sparse`, `dense` and `linear` are the controls of `tree`."""
OURS = ("tree", "sparse", "dense", "linear")
"""The families that are compared by default on tables."""
ON_IMAGES = ("deep", "cnn", "dense", "linear")
"""The families that are compared by default on images."""
FOR_IMAGES = ("tied", "tied-linear", "deep", "deep-linear", "cnn", "separable", "blueprint")
"""Families that share weights between places of an image; the rest are other authors' neurons."""
