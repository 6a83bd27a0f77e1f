"""Local wiring: each dendrite, or each neuron, reads pixels of its own small window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import check_int, check_one_of
from ..tree import Forest, IntArray
from .base import Attachment, Integers, Wiring, check_seed, dendrite_of_synapse, generator, ungrouped
from .images import check_image_shape, image_of
from .sampled import deal


@dataclass(frozen=True)
class Local(Wiring):
    """Each dendrite (or neuron) reads pixels of its own random window, all channels; windows may overlap.

    Pixels are drawn without repetition until a window has none left. Windows lie inside the image; their places are
    dealt so that all are used about equally often. Pixels near an edge lie in fewer windows, and are read less often
    than those in the middle.

    Args:
        window: side of the square window, in pixels; the whole side of an image that is smaller.
        per: what has a window: each `"dendrite"` with synapses, or each `"neuron"`.
        place: for windows per dendrite: `"near"` puts those of a neuron within a window's side of each other,
            `"free"` puts them anywhere.
        image_shape: (channels, height, width); a square image of one channel by default.
        seed: of the draw; None draws it from torch's generator.

    >>> index = Local(window=2, per="neuron", seed=0).index(Forest.grow(2, fan_in=4), 16)
    >>> rows, columns = index // 4, index % 4
    >>> int(rows.max() - rows.min()), int(columns.max() - columns.min())
    (1, 1)
    """

    name: ClassVar[str] = "local"
    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    window: int = 7
    per: str = "dendrite"
    place: str = "near"
    image_shape: tuple[int, int, int] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        check_int("window", self.window)
        check_one_of("per", self.per, ("dendrite", "neuron"))
        check_one_of("place", self.place, ("near", "free"))
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))
        check_seed(self.seed)

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The pixels of one window."""
        channels, height, width = self.image(in_features)
        return channels * min(self.window, height) * min(self.window, width)

    def image(self, in_features: int) -> tuple[int, int, int]:
        """The image that the inputs form: as given, or a square one of one channel."""
        return image_of(self.image_shape, in_features, self.name)

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The pixel each synapse reads."""
        return self.attach(forest, in_features).inputs

    def attach(self, forest: Forest, in_features: int) -> Attachment:
        """Place the windows, then draw the pixels of each.

        >>> Local(window=9, seed=0).attach(Forest.grow([4, 2]), 16).windows.tolist()  # two dendrites and the root
        [[0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 0, 0]]
        """
        channels, height, width = self.image(in_features)
        random, side = generator(self.seed), (min(self.window, height), min(self.window, width))
        dendrite = dendrite_of_synapse(forest)
        unit = dendrite if self.per == "dendrite" else forest.neuron_of_synapse
        owners, owner = np.unique(unit, return_inverse=True)  # of windows: those with synapses, renumbered
        places = (height - side[0] + 1, width - side[1] + 1)
        if self.per == "dendrite" and self.place == "near":
            top, left = _near(forest.neuron_of_node[owners], forest.neurons, places, side, random)
        else:
            top, left = deal_corners(len(owners), places, random)
        pixel = ungrouped(owner, deal_hands(np.bincount(owner), channels * side[0] * side[1], random))  # in its window
        channel, rest = np.divmod(pixel.astype(np.int64), side[0] * side[1])
        y, x = np.divmod(rest, side[1])
        inputs = (channel * height * width + (top[owner] + y) * width + left[owner] + x).astype(np.int32)
        windows = np.zeros((forest.nodes, 4), dtype=np.int32)
        windows[dendrite, 0], windows[dendrite, 1] = top[owner], left[owner]
        windows[dendrite, 2:] = side
        return Attachment(inputs, windows)


def deal_corners(count: int, places: tuple[int, int], random: np.random.Generator) -> tuple[Integers, Integers]:
    """Upper left corners, every place about equally often."""
    corner = deal(np.ones(count, dtype=np.int64), places[0] * places[1], random)
    return np.divmod(corner, places[1])


def _near(
    neuron: IntArray, neurons: int, places: tuple[int, int], side: tuple[int, int], random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Corners around one of the neuron's own, at most half a window away, inside the image."""
    corners = deal_corners(neurons, places, random)
    found = []
    for corner, count, length in zip(corners, places, side, strict=True):
        shift = random.integers(-(length // 2), length // 2 + 1, len(neuron))
        found.append(np.clip(corner[neuron] + shift, 0, count - 1))
    return found[0], found[1]


def deal_hands(sizes: Integers, cards: int, random: np.random.Generator) -> Integers:
    """Hands of these sizes, each from its own shuffled deck; hands larger than a deck take several."""
    decks = -(-int(sizes.max()) // cards)
    keys = random.random((len(sizes), decks, cards))
    hands = np.argsort(keys, axis=2).reshape(len(sizes), -1)  # (owners, cards dealt)
    return hands[np.arange(decks * cards)[None, :] < sizes[:, None]]
