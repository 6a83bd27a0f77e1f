"""Dropout masks inside the loops: a hash of (seed, sample, synapse) decides, nothing is stored.

The backward pass makes the same bits again. One 32-bit hash serves two neighbouring synapses of a node, 16 bits each.
`ops/dropout.py` says the same in PyTorch.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from .core import part


@part
def mix(h):
    """Scramble 32 bits, every input bit reaching every output bit."""
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))


@part
def synapse_key(low, high, edge):
    """The key of a pair of synapses: `edge` is the first of the two."""
    return mix(np.uint32(mix(np.uint32(np.uint32(edge) + high + np.uint32(0x9E3779B9))) ^ low))


@part
def sample_keys(low, high, sample, n, keys):
    """The keys of `n` samples from `sample` on."""
    for j in range(n):
        keys[j] = mix(np.uint32(mix(np.uint32(np.uint32(sample + j) ^ low)) + high))


@part
def pair_bits(key, sample_key):
    """32 random bits for a pair of synapses in a sample: the upper 16 for the first, the lower for the second."""
    # A multiplier of the synapse's own: with one for all, masks of synapses whose keys differ in few bits go together.
    h = np.uint32(np.uint32(key ^ sample_key) * np.uint32(key | np.uint32(1)))
    return np.uint32(h ^ (h >> np.uint32(16)))


@intrinsic
def keeps(_context, bits, shift, limit):
    """Whether 16 of the bits, from `shift` on, reach the limit. In 32 bits: Numba alone would compare in 64."""

    def codegen(_context, builder, _signature, arguments):
        mask = arguments[0].type(0xFFFF)
        return builder.icmp_signed(">=", builder.and_(builder.lshr(arguments[0], arguments[1]), mask), arguments[2])

    return types.boolean(types.uint32, types.uint32, types.uint32), codegen


UPPER, LOWER = np.uint32(16), np.uint32(0)  # where the bits of the first and of the second synapse of a pair begin
