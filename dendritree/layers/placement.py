"""The trees of neurons whose dendrites stand at several places of their patch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError
from ..tree import Forest
from ..tree.levels import AUTO
from ..wiring import Shared, Wiring

TREE_OPTIONS = {"branching": AUTO, "depth": None, "fan_in": None, "wiring": "shared", "repeats": None, "ragged": False}
"""Options that `places` determines, and their defaults."""


@dataclass(frozen=True)
class Placement:
    """A dendrite that reads all of a window, at several places of a neuron's patch, and a soma that weighs the places.

    It takes the role of a `Growth` in a layer, but its trees are grown only if they are asked for: the convolutions
    do not need them, and those of a wide layer have millions of edges.

    >>> placement = Placement(3, 8, window=(3, 3), places=(3, 3))
    >>> placement.patch, placement.weights, placement.forest()[0].describe()
    ((5, 5), 288, '8 trees of 243 synapses, 9 + 1 dendrites, 2 of them with weights of their own')
    """

    channels: int
    neurons: int
    window: tuple[int, ...]
    """Sides of the dendrite's window."""
    places: tuple[int, ...]
    """Places of the dendrite along each axis, next to each other."""

    wiring: ClassVar[Wiring] = Shared()
    repeats: ClassVar[None] = None
    ragged: ClassVar[bool] = False

    @property
    def synapses(self) -> int:
        """Synapses of a dendrite."""
        return self.channels * math.prod(self.window)

    @property
    def copies(self) -> int:
        """Places of a dendrite."""
        return math.prod(self.places)

    @property
    def branching(self) -> list[int]:
        """Children of a dendrite and of a soma."""
        return [self.synapses, self.copies]

    @property
    def patch(self) -> tuple[int, ...]:
        """Sides of the area that a neuron reads."""
        return tuple(w + p - 1 for w, p in zip(self.window, self.places, strict=True))

    @property
    def weights(self) -> int:
        """Weights of all neurons, those of a dendrite counted once."""
        return self.neurons * (self.synapses + self.copies)

    @property
    def biases(self) -> int:
        """Biases of all neurons: of the dendrites, then of the somata."""
        return 2 * self.neurons

    def forest(self) -> tuple[Forest, None]:
        """The trees of the neurons at one position, wired to their patch of shape (channels, *patch)."""
        patch = np.arange(self.channels * math.prod(self.patch), dtype=np.int32).reshape(self.channels, *self.patch)
        windows = np.lib.stride_tricks.sliding_window_view(patch, (self.channels, *self.window))
        synapses = np.tile(windows.reshape(-1), self.neurons)  # (neurons, places, channels, window)
        dendrites, somata = np.arange(self.neurons * self.copies), np.arange(self.neurons)
        offsets = np.append(dendrites * self.synapses, len(synapses) + np.arange(self.neurons + 1) * self.copies)
        roots = len(dendrites) + somata
        template = np.append(somata.repeat(self.copies) * self.copies, roots)
        source = np.append(synapses, patch.size + dendrites)
        return Forest(patch.size, source, offsets, roots, template), None  # type: ignore[arg-type]

    def split(self, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Weights of the dendrites and of the somata in the shape of filters, and their biases."""
        dendrites, somata = torch.split(weight, [self.neurons * self.synapses, self.neurons * self.copies])
        shift, root = (None, None) if bias is None else (bias[: self.neurons], bias[self.neurons :])
        return (
            dendrites.view(self.neurons, self.channels, *self.window),
            somata.view(self.neurons, 1, *self.places),
            shift,
            root,
        )

    def check(self, options: Mapping[str, Any]) -> None:
        """Reject options of trees that the places determine."""
        for name, default in TREE_OPTIONS.items():
            if options[name] != default:
                raise OptionError(f"{name} must be left out where places determine the tree: got {options[name]!r}")
