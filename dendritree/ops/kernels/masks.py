"""Which synapses dropout silences: a hash of (seed, sample, synapse) decides.

One 32-bit hash serves two neighboring synapses of a node, 16 bits each. `ops/dropout.py` is the PyTorch version.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .memory import UINT32, at
from .parts import part

FIRST, SECOND = np.uint32(0), np.uint32(16)  # how far a hash is shifted for each synapse of a pair


class Mask(NamedTuple):
    """The values that determine which synapses are silent."""

    limit: Any
    """A synapse is silent if its 16 bits, the upper ones of a shifted hash, are below this; 0 without dropout."""
    low: Any
    high: Any
    """Both halves of the seed."""
    keys: Any
    """The address of the keys of the current samples."""


@part
def mix(h):
    """Scramble 32 bits so that every input bit affects every output bit."""
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))


@part
def synapse_key(mask, edge):
    """The key of a pair of synapses: `edge` is the first of the two."""
    return mix(np.uint32(mix(np.uint32(np.uint32(edge) + mask.high + np.uint32(0x9E3779B9))) ^ mask.low))


@part
def sample_key(mask, sample):
    """The key of a sample."""
    return mix(np.uint32(mix(np.uint32(sample ^ mask.low)) + mask.high))


@part
def sample_keys(mask, sample, n):
    """Write the keys of `n` samples from `sample` on."""
    keys = at(mask.keys, UINT32)
    for j in range(n):
        keys[j] = sample_key(mask, np.uint32(sample + j))
