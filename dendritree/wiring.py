"""Wirings: which input each synapse reads.

A wiring is a small frozen object. It says how many synapses a neuron of a layer has (`fan_in`) and names the
input of each of them (`index`). Nothing is ever copied: kernels read the inputs through the index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .errors import OptionError, ShapeError, check_one_of
from .tree import Forest, IntArray

__all__ = ["WIRINGS", "Partition", "Shared", "Wiring", "resolve_wiring"]


@dataclass(frozen=True)
class Wiring(ABC):
    """Base of all wirings."""

    name: ClassVar[str]

    @abstractmethod
    def fan_in(self, in_features: int, out_features: int) -> int:
        """Synapses of each neuron in a layer of these sizes."""

    @abstractmethod
    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The input each synapse of an unwired `forest` reads, in edge order."""


@dataclass(frozen=True)
class Partition(Wiring):
    """The paper's layer: the inputs are cut into equal slices, neuron `n` reads slice `n`.

    >>> Partition().index(Forest.grow(2, fan_in=2, neurons=2), 4).tolist()
    [0, 1, 2, 3]
    """

    name: ClassVar[str] = "partition"

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The size of a slice."""
        if in_features % out_features:
            below = in_features // out_features * out_features
            fitting = f"{below} or {below + out_features}" if below else f"{out_features}"
            raise ShapeError(
                f"in_features must be a multiple of out_features for wiring 'partition': got {in_features} and "
                f"{out_features}; {fitting} inputs would fit"
            )
        return in_features // out_features

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """Each neuron's slice, in order."""
        first_input = np.cumsum(forest.fan_in_of_neuron) - forest.fan_in_of_neuron
        return (first_input[forest.neuron_of_synapse] + _rank_in_neuron(forest)).astype(np.int32)


@dataclass(frozen=True)
class Shared(Wiring):
    """The paper's classifier: every neuron reads all inputs, in their order.

    >>> Shared().index(Forest.grow(2, fan_in=2, neurons=2), 2).tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "shared"

    def fan_in(self, in_features: int, out_features: int) -> int:
        """All inputs."""
        return in_features

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """All inputs in order, for each neuron."""
        return _rank_in_neuron(forest)


WIRINGS: dict[str, type[Wiring]] = {wiring.name: wiring for wiring in (Partition, Shared)}
"""Wirings by name; a name stands for the wiring with its default options."""


def resolve_wiring(wiring: str | Wiring) -> Wiring:
    """The wiring a name stands for; a wiring stands for itself.

    >>> resolve_wiring("shared")
    Shared()
    """
    if isinstance(wiring, Wiring):
        return wiring
    if isinstance(wiring, str):
        return WIRINGS[check_one_of("wiring", wiring, WIRINGS)]()
    raise OptionError(f"wiring must be a name or a Wiring object: got {wiring!r}")


def _rank_in_neuron(forest: Forest) -> IntArray:
    """For each synapse, how many synapses of its neuron come before it."""
    neuron = forest.neuron_of_synapse
    order = np.argsort(neuron, kind="stable")
    first = np.cumsum(forest.fan_in_of_neuron) - forest.fan_in_of_neuron
    rank = np.empty(forest.synapses, dtype=np.int32)
    rank[order] = np.arange(forest.synapses) - first[neuron[order]]
    return rank
