"""Receptive fields of a dANN: dendrites that read the pixels around a centre of their own.

Source: as `dann.py`; the rule is that of its authors' code. Pixels next to the centre come first, then chance decides
among the rings around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..tree import Forest, IntArray
from ..wiring import Wiring
from ..wiring.base import check_seed, dendrite_of_synapse, generator
from ..wiring.images import check_image_shape, image_of

__all__ = ["ReceptiveFields"]

Integers = npt.NDArray[np.integer[Any]]
CHUNK = 2048  # fields drawn at once: 2048 x 784 random numbers are 13 MB


@dataclass(frozen=True)
class ReceptiveFields(Wiring):
    """Each dendrite reads the pixels around its centre; centres lie anywhere, or around one of the neuron's own.

    Args:
        per: what has a centre of its own anywhere in the image: each `"dendrite"` (a local field), or each `"neuron"`,
            whose dendrites have theirs around it (a global field).
        image_shape: (channels, height, width); a square image of one channel by default.
        seed: of the draw; None draws it from torch's generator.

    >>> inputs = ReceptiveFields(seed=0).index(Forest.grow([9, 2]), 100).reshape(2, 9)
    >>> bool((np.ptp(inputs // 10, axis=1) <= 4).all() and (np.ptp(inputs % 10, axis=1) <= 4).all())
    True
    """

    name: ClassVar[str] = "receptive-fields"
    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    per: str = "dendrite"
    image_shape: tuple[int, int, int] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))
        check_seed(self.seed)

    def fan_in(self, in_features: int, out_features: int) -> int:
        """All inputs."""
        return in_features

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """Draw the centres, then the pixels around each."""
        image, random = image_of(self.image_shape, in_features, "field"), generator(self.seed)
        _, height, width = image
        dendrites, dendrite = np.unique(dendrite_of_synapse(forest), return_inverse=True)
        if self.per == "neuron":
            around = random.integers(height * width, size=forest.neurons)
            neuron = forest.neuron_of_node[dendrites]
            centre = _in_order(neuron, _nearest(around, np.bincount(neuron), (1, height, width), random))
        else:
            centre = random.integers(height * width, size=len(dendrites))
        return _in_order(dendrite, _nearest(centre, np.bincount(dendrite), image, random)).astype(np.int32)


def _in_order(group: Integers, values: Integers) -> Integers:
    """Values given group by group, put where the members of each group are."""
    placed = np.empty_like(values)
    placed[np.argsort(group, kind="stable")] = values
    return placed


def _nearest(centres: Integers, counts: Integers, image: tuple[int, int, int], random: np.random.Generator) -> Integers:
    """So many inputs around each centre (a pixel), none twice, centre after centre.

    Those of the centre and its eight neighbours come first; the rest is drawn from the rings around them, as few rings
    as hold enough.
    """
    channels, height, width = image
    if counts.max() > channels * height * width:
        raise OptionError(f"a receptive field must have no more than the image's pixels: got {counts.max()} of {image}")
    y, x = np.divmod(np.tile(np.arange(height * width), channels), width)
    found = []
    for begin in range(0, len(centres), CHUNK):
        needed = counts[begin : begin + CHUNK, None]
        down, right = np.divmod(centres[begin : begin + CHUNK, None], width)
        distance = np.maximum(abs(y - down), abs(x - right))  # (centres, inputs): rings are squares
        far = np.sort(distance, axis=1)[np.arange(len(needed)), needed[:, 0] - 1]  # of the last ring that is needed
        group = (distance > 1).astype(np.int64) + (distance > np.maximum(far, 1)[:, None])
        order = np.argsort(group + random.random(distance.shape), axis=1)
        found.append(order[np.arange(distance.shape[1]) < needed])
    return np.concatenate(found)
