"""What a wiring is, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ..errors import OptionError, ShapeError, check_int
from ..tree import Forest, IntArray

__all__ = ["Attachment", "Wiring", "check_seed", "dendrite_of_synapse", "generator", "rank_in_neuron"]


@dataclass(frozen=True, eq=False)
class Attachment:
    """What a wiring says of a forest: where its synapses attach, and where they could."""

    inputs: IntArray
    """The input each synapse reads, in edge order."""
    windows: IntArray | None
    """Top, left, height and width of the window that a node's synapses read from, shape (nodes, 4); zeros for a node
    without synapses. None for a wiring that has no windows."""


@dataclass(frozen=True)
class Wiring(ABC):
    """Base of all wirings."""

    name: ClassVar[str]
    drawn: ClassVar[bool] = False
    """Whether synapses are attached by chance or by hand: then a state dict may bring another wiring of this kind."""
    any_fan_in: ClassVar[bool] = False
    """Whether a neuron may have any number of synapses, so that its tree is ragged by nature."""

    @abstractmethod
    def fan_in(self, in_features: int, out_features: int) -> int:
        """Synapses of each neuron in a layer of these sizes, if the user does not say."""

    @abstractmethod
    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The input each synapse of an unwired `forest` reads, in edge order."""

    def attach(self, forest: Forest, in_features: int) -> Attachment:
        """The inputs of an unwired `forest`, and their windows if this wiring has any: both of one draw."""
        return Attachment(self.index(forest, in_features), None)

    def image(self, in_features: int) -> tuple[int, int, int] | None:
        """(channels, height, width) of the image that windows lie in; None for a wiring that has no windows."""
        return None

    def check_fan_in(self, fan_in: int, in_features: int, out_features: int) -> int:
        """Return a fan-in that the user asked for, or say which this wiring takes."""
        fan_in = check_int("fan_in", fan_in)
        if not self.any_fan_in and fan_in != (only := self.fan_in(in_features, out_features)):
            raise ShapeError(
                f"fan_in must be {only} for wiring {self.name!r} from {in_features} inputs to {out_features} neurons: "
                f"got {fan_in}; wirings 'random', 'strided' and 'local' take any"
            )
        return fan_in


def rank_in_neuron(forest: Forest) -> IntArray:
    """For each synapse, how many synapses of its neuron come before it."""
    return _rank(forest.neuron_of_synapse)


def dendrite_of_synapse(forest: Forest) -> IntArray:
    """For each synapse, the node it belongs to."""
    return forest.node_of_edge[forest.synapse_edges]


def _rank(group: IntArray) -> IntArray:
    """For each item, how many items of its group come before it."""
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group)
    first = np.cumsum(counts) - counts
    rank = np.empty(len(group), dtype=np.int32)
    rank[order] = np.arange(len(group)) - first[group[order]]
    return rank


def check_seed(seed: int | None) -> None:
    """A seed is None or an integer of at least 0."""
    if seed is not None and check_int("seed", seed, least=0) >= 2**63:
        raise OptionError(f"seed must be less than 2**63: got {seed}")


def generator(seed: int | None) -> np.random.Generator:
    """Random numbers from a seed; from torch's generator, which `torch.manual_seed` governs, for None."""
    return np.random.default_rng(int(torch.randint(2**62, (1,), device="cpu")) if seed is None else seed)
