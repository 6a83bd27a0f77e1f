"""Wirings without an image: slices, all inputs, combs, inputs dealt at random, and a wiring given by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import OptionError, ShapeError
from ..tree import Forest, IntArray
from .interface import Integers, Wiring, check_seed, dendrite_of_synapse, generator, rank_in_group, ungrouped


@dataclass(frozen=True)
class Partition(Wiring):
    """The paper's layer: the inputs are cut into equal slices, and neuron `n` reads slice `n`.

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
        return ungrouped(forest.neuron_of_synapse, np.arange(forest.synapses))


@dataclass(frozen=True)
class Shared(Wiring):
    """The paper's classifier: every neuron reads all inputs, in order.

    >>> Shared().index(Forest.grow(2, fan_in=2, neurons=2), 2).tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "shared"

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """All inputs in order, for each neuron."""
        return rank_in_group(forest.neuron_of_synapse)


@dataclass(frozen=True)
class Strided(Wiring):
    """Interleaved combs: every dendrite spans the whole input, with the synapses of its neighbors between its own.

    With fewer synapses than inputs, a neuron reads inputs at equal distances; each neuron starts at a different one.

    >>> Strided().index(Forest.grow([2, 2]), 4).tolist()  # two dendrites of two synapses
    [0, 2, 1, 3]
    """

    name: ClassVar[str] = "strided"
    any_fan_in: ClassVar[bool] = True

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """For each neuron, the first synapses of all dendrites, then the second ones, ... along the inputs."""
        neuron, dendrite = forest.neuron_of_synapse, dendrite_of_synapse(forest)
        along = np.lexsort((dendrite, rank_in_group(dendrite), neuron))  # synapses in the order of their inputs
        step = np.empty(forest.synapses, dtype=np.int64)
        step[along] = rank_in_group(neuron[along])
        fan_in = forest.fan_in_of_neuron.astype(np.int64)[neuron]
        # Neurons start at different inputs: the distance between two inputs of a neuron is divided among them.
        begin = neuron.astype(np.int64) * in_features // (fan_in * forest.neurons)
        return ((step * in_features // fan_in + begin) % in_features).astype(np.int32)


@dataclass(frozen=True)
class Custom(Wiring):
    """The input of every synapse, given by hand: neuron by neuron, each in the order of its dendrites.

    Args:
        inputs: shape (neurons, fan_in), or flat.

    >>> Custom([[0, 1], [1, 2]]).index(Forest.grow(2, fan_in=2, neurons=2), 3).tolist()
    [0, 1, 1, 2]
    """

    name: ClassVar[str] = "custom"
    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    inputs: Any

    def __post_init__(self) -> None:
        try:
            given = np.asarray(self.inputs)
        except ValueError:
            given = np.empty(0)
        if given.ndim not in (1, 2) or not given.size or not np.issubdtype(given.dtype, np.integer):
            raise OptionError(f"inputs must be integers of shape (neurons, fan_in): got {self.inputs!r:.80}")
        if given.min() < 0 or given.max() >= 2**31:
            raise OptionError(f"inputs must be indices, 0 ... 2**31 - 1: got {given.min()} ... {given.max()}")
        rows = tuple(tuple(map(int, row)) for row in given.reshape(-1, given.shape[-1]))
        object.__setattr__(self, "inputs", rows if given.ndim == 2 else rows[0])

    def __repr__(self) -> str:
        return f"Custom({np.asarray(self.inputs).size} inputs)"

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The number of inputs given for each neuron."""
        given = np.asarray(self.inputs)
        if given.size % out_features or (given.ndim == 2 and len(given) != out_features):
            raise ShapeError(
                f"a custom wiring must give {out_features} neurons the same number of inputs: got shape {given.shape}"
            )
        return given.size // out_features

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The given inputs, in edge order."""
        given = np.asarray(self.inputs).ravel()
        if len(given) != forest.synapses:
            raise ShapeError(
                f"a custom wiring must name the inputs of all {forest.synapses} synapses: got {len(given)}"
            )
        return ungrouped(forest.neuron_of_synapse, given)


@dataclass(frozen=True)
class Random(Wiring):
    """Each neuron reads inputs dealt from shuffled decks; by default all of them, in an order of its own.

    Every input is read about equally often, and none twice within a neuron where that is possible.

    Args:
        seed: seed of the deal; None draws it from torch's generator.

    >>> sorted(Random(seed=0).index(Forest.grow(2, fan_in=4), 4).tolist())
    [0, 1, 2, 3]
    """

    name: ClassVar[str] = "random"
    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    seed: int | None = None

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """Deal inputs to one neuron after another; per dendrite if a neuron has more synapses than there are inputs."""
        crowded = forest.fan_in_of_neuron.max() > in_features
        hand = dendrite_of_synapse(forest) if crowded else forest.neuron_of_synapse
        return ungrouped(hand, deal(np.bincount(hand), in_features, generator(self.seed)))


def deal(sizes: Integers, cards: int, random: np.random.Generator) -> IntArray:
    """Deal hands of these sizes from one shuffled deck after another; no hand that fits a deck holds a card twice.

    >>> deal(np.array([2, 2]), 2, np.random.default_rng(0)).reshape(2, 2).sum(1).tolist()
    [1, 1]
    """
    total = int(sizes.sum())
    decks = -(-total // cards)
    dealt = random.permuted(np.tile(np.arange(cards, dtype=np.int32), (decks, 1)), axis=1).ravel()
    ends = np.cumsum(sizes)
    for begin, end in zip(ends - sizes, ends, strict=True):
        edge = -(-begin // cards) * cards  # where the next deck begins
        if begin < edge < end <= begin + cards:
            _keep_apart(dealt[begin:edge], dealt[edge : edge + cards], end - edge)
    return dealt[:total]


def _keep_apart(before: IntArray, deck: IntArray, needed: int) -> None:
    """Reorder a deck so that none of its first `needed` cards is among those `before`."""
    later = np.zeros(len(deck), bool)
    later[before] = True  # by card; `np.isin` takes ten times as long
    first = np.flatnonzero(~later[deck])[:needed]
    later[:] = True
    later[first] = False  # by place in the deck
    deck[:] = np.concatenate([deck[first], deck[later]])
