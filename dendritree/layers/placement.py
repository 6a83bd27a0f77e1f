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
from ..tree import Forest, IntArray
from ..tree.levels import AUTO
from ..wiring import Shared, Wiring

TREE_OPTIONS = {"branching": AUTO, "fan_in": None, "wiring": "shared", "repeats": None, "ragged": False}
"""Options that `places` determines, and their defaults."""


@dataclass(frozen=True)
class Placement:
    """A dendrite that reads all of a window, at several places of a neuron's patch, and a soma that weighs the places.

    In deeper trees branches stand between them: a branch weighs dendrites at several places, and stands at as many
    places itself. It takes the role of a `Growth` in a layer, but grows its trees only on request: the convolutions do
    not need them, and those of a wide layer have millions of edges.

    >>> placement = Placement(3, 8, window=(3, 3), places=(3, 3))
    >>> placement.patch, placement.weights, placement.forest()[0].describe()
    ((5, 5), 288, '8 trees of 243 synapses, 9 + 1 dendrites, 2 of them with weights of their own')
    >>> deeper = Placement(3, 8, window=(3, 3), places=(3, 3), depth=3)
    >>> deeper.patch, deeper.weights, deeper.forest()[0].describe()
    ((7, 7), 360, '8 trees of 2,187 synapses, 81 + 9 + 1 dendrites, 3 of them with weights of their own')
    """

    channels: int
    neurons: int
    window: tuple[int, ...]
    """Sides of the dendrite's window."""
    places: tuple[int, ...]
    """Adjacent places along each axis."""
    depth: int = 2
    """Levels of the tree: 2 for dendrites and a soma."""

    wiring: ClassVar[Wiring] = Shared()
    repeats: ClassVar[None] = None
    ragged: ClassVar[bool] = False

    @property
    def synapses(self) -> int:
        """Synapses of a dendrite."""
        return self.channels * math.prod(self.window)

    @property
    def copies(self) -> int:
        """Places that a branch or a soma weighs."""
        return math.prod(self.places)

    @property
    def branching(self) -> list[int]:
        """Children of a dendrite, of branches, and of a soma."""
        return [self.synapses, *[self.copies] * (self.depth - 1)]

    def reach(self, level: int) -> tuple[int, ...]:
        """Sides of the area that a node of a level reads; dendrites are level 1."""
        return tuple(w + (level - 1) * (p - 1) for w, p in zip(self.window, self.places, strict=True))

    @property
    def patch(self) -> tuple[int, ...]:
        """Sides of the area that a neuron reads."""
        return self.reach(self.depth)

    @property
    def weights(self) -> int:
        """Weights of all neurons, those of a dendrite or branch counted once."""
        return self.neurons * sum(self.branching)

    @property
    def biases(self) -> int:
        """Biases of all neurons, one per level."""
        return self.depth * self.neurons

    def forest(self) -> tuple[Forest, None]:
        """The trees of the neurons at one position, wired to their patch of shape (channels, *patch)."""
        patch = np.arange(self.channels * math.prod(self.patch), dtype=np.int32).reshape(self.channels, *self.patch)
        windows = np.lib.stride_tricks.sliding_window_view(patch, (self.channels, *self.window))[0]
        steps = np.stack(np.unravel_index(np.arange(self.copies), self.places))  # (axes, places)
        corners = np.zeros((len(self.places), 1), int)  # of every dendrite, the soma's first place first
        for _ in range(self.depth - 1):
            corners = (corners[:, :, None] + steps[:, None]).reshape(len(self.places), -1)
        source = [np.tile(windows[tuple(corners)].reshape(-1), self.neurons)]  # (neurons, dendrites, channels, window)
        template: list[IntArray] = []
        offsets: list[IntArray] = []
        nodes = edges = 0
        for level, children in enumerate(self.branching):
            per_neuron = self.copies ** (self.depth - 1 - level)
            count = self.neurons * per_neuron
            if level:
                source.append(patch.size + nodes - count * children + np.arange(count * children))
            template.append(nodes + np.arange(self.neurons).repeat(per_neuron) * per_neuron)
            offsets.append(edges + np.arange(count) * children)
            nodes, edges = nodes + count, edges + count * children
        roots = np.arange(nodes - self.neurons, nodes)
        offsets.append(np.array([edges]))
        tables = [np.concatenate(parts) for parts in (source, offsets, template)]
        return Forest(patch.size, tables[0], tables[1], roots, tables[2]), None  # type: ignore[arg-type]

    def filters(self, weight: Tensor, bias: Tensor | None) -> list[tuple[Tensor, Tensor | None]]:
        """The weights of each level in the shape of filters, dendrites first, and the biases."""
        weights = torch.split(weight, [self.neurons * children for children in self.branching])
        shapes = [(self.channels, *self.window), *[(1, *self.places)] * (self.depth - 1)]
        filters = [level.view(self.neurons, *shape) for level, shape in zip(weights, shapes, strict=True)]
        biases = [None] * self.depth if bias is None else torch.split(bias, self.neurons)
        return list(zip(filters, biases, strict=True))

    def check(self, options: Mapping[str, Any]) -> None:
        """Reject options of trees that the places determine."""
        for name, default in TREE_OPTIONS.items():
            if options[name] != default:
                raise OptionError(f"{name} must be left out where places determine the tree: got {options[name]!r}")
