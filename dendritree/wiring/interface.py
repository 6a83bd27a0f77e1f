"""The base class of wirings, and helpers that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from ..errors import OptionError, ShapeError, check_int
from ..randomness import generator_on
from ..tree import Forest, IntArray

Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Attachment:
    """The inputs that a wiring attaches the synapses of a forest to, and the windows they were drawn from."""

    inputs: IntArray
    """The input each synapse reads, in edge order."""
    windows: IntArray | None
    """Top, left, height and width of the window that a node's synapses read from, shape (nodes, 4); zeros for a node
    without synapses. None for a wiring that has no windows."""
    template: IntArray | None = None
    """For a wiring that ties nodes: the node whose weights each node has, as in `Forest`."""


@dataclass(frozen=True)
class Wiring(ABC):
    """Base of all wirings."""

    name: ClassVar[str]
    drawn: ClassVar[bool] = False
    """Whether synapses are attached at random or by hand: a state dict may then hold another wiring of this kind."""
    any_fan_in: ClassVar[bool] = False
    """Whether a neuron may have any number of synapses, so that its tree may be ragged."""

    def fan_in(self, in_features: int, out_features: int) -> int:
        """Synapses per neuron in a layer of these sizes unless the user sets them: all inputs."""
        return in_features

    @abstractmethod
    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The input each synapse of an unwired `forest` reads, in edge order."""

    def attach(self, forest: Forest, in_features: int) -> Attachment:
        """The inputs of an unwired `forest`, and their windows if this wiring has any: both from one draw."""
        return Attachment(self.index(forest, in_features), None)

    def image(self, in_features: int) -> tuple[int, int, int] | None:
        """(channels, height, width) of the image that windows lie in; None for a wiring that has no windows."""
        return None

    def check_fan_in(self, fan_in: int, in_features: int, out_features: int) -> int:
        """Return the requested fan-in, or raise an error that names the one this wiring takes."""
        fan_in = check_int("fan_in", fan_in)
        if not self.any_fan_in and fan_in != (only := self.fan_in(in_features, out_features)):
            raise ShapeError(
                f"fan_in must be {only} for wiring {self.name!r} from {in_features} inputs to {out_features} neurons: "
                f"got {fan_in}; wirings 'random', 'strided' and 'local' take any"
            )
        return fan_in


def dendrite_of_synapse(forest: Forest) -> IntArray:
    """For each synapse, the node it belongs to."""
    return forest.node_of_edge[forest.synapse_edges]


def rank_in_group(group: Integers) -> IntArray:
    """For each item, how many items of its group come before it.

    >>> rank_in_group(np.array([0, 1, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    counts = np.bincount(group)
    return ungrouped(group, np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts))


def ungrouped(group: Integers, values: Integers) -> IntArray:
    """Reorder values that are given group by group to the order of the items.

    >>> ungrouped(np.array([0, 1, 0, 0, 1]), np.array([10, 11, 12, 20, 21])).tolist()
    [10, 20, 11, 12, 21]
    """
    placed = np.empty(len(group), dtype=np.int32)
    placed[np.argsort(group, kind="stable")] = values
    return placed


def check_seed(seed: int | None) -> None:
    """Reject a seed that is neither None nor an integer in 0 ... 2**63 - 1."""
    if seed is not None and check_int("seed", seed, least=0) >= 2**63:
        raise OptionError(f"seed must be less than 2**63: got {seed}")


def generator(seed: int | None) -> np.random.Generator:
    """A generator with this seed; for None one seeded from torch's generator, which `torch.manual_seed` controls."""
    if seed is None:
        cpu = torch.device("cpu")
        seed = int(torch.randint(2**62, (1,), device=cpu, generator=generator_on(cpu)))
    return np.random.default_rng(seed)
