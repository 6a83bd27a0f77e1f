"""The numbers of a step as they stand in a C file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .steps import Array, Conv, Network, Step, Trees


@dataclass(frozen=True, eq=False)
class Coded:
    """Weights and biases of a step in float, or as integers with what is needed to scale their sums."""

    weight: Array | None = None
    """In the shape of the step's weights."""
    bias: Array | None = None
    read: str = "float"
    """C type of the inputs."""
    write: str = "float"
    """C type of the results."""
    rescale: NDArray[np.int64] | None = None
    """For each bias: a multiplier of 11 bits and, above it, a shift."""
    pre: int = 0
    """Shift of the sums before they are multiplied."""
    zero: tuple[int, ...] = ()
    """For the first step: the number that stands for 0, per channel, beyond the edges of an image."""


@dataclass(frozen=True, eq=False)
class Code:
    """All numbers of a network."""

    steps: tuple[Coded, ...]
    bits: int | None = None
    """Bits of a weight, or None for float."""
    input_scale: tuple[float, ...] = (1.0,)
    """Input = (number - input_zero) * input_scale, per channel."""
    input_zero: tuple[float, ...] = (0.0,)
    score_scale: float = 1.0


def in_float(network: Network) -> Code:
    """The numbers of a network in float."""
    return Code(tuple(_plain(step) for step in network.steps))


def _plain(step: Step) -> Coded:
    return Coded(step.weight, step.bias) if isinstance(step, Conv | Trees) else Coded()
