"""Random wirings: every input about equally often, and none twice within a neuron where that is possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..tree import Forest, IntArray
from .base import Integers, Wiring, check_seed, dendrite_of_synapse, generator, ungrouped


@dataclass(frozen=True)
class Random(Wiring):
    """Each neuron reads inputs dealt from shuffled decks; by default as many as there are, in its own order.

    Args:
        seed: of the deal; None draws it from torch's generator.

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
        """Deal to neuron after neuron; to dendrite after dendrite if a neuron has more synapses than inputs."""
        crowded = forest.fan_in_of_neuron.max() > in_features
        hand = dendrite_of_synapse(forest) if crowded else forest.neuron_of_synapse
        return ungrouped(hand, deal(np.bincount(hand), in_features, generator(self.seed)))


def deal(sizes: Integers, cards: int, random: np.random.Generator) -> IntArray:
    """Hands of these sizes from shuffled decks of `cards`, one after the other; no card twice in a hand that fits one.

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
    fresh = ~np.isin(deck, before)
    first = np.flatnonzero(fresh)[:needed]
    rest = np.setdiff1d(np.arange(len(deck)), first, assume_unique=True)
    deck[:] = np.concatenate([deck[first], deck[rest]])
