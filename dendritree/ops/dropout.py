"""Per-synapse dropout without a stored mask: a hash of (seed, sample, synapse) decides.

`cpu/dropout.hpp` does the same for the fused kernels; this is the PyTorch version, for the other backends and any
device. Two neighboring synapses of a node share one 32-bit hash, 16 bits each, so probabilities are rounded to 1/65536.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..randomness import generator_on
from ..tree import Forest

__all__ = ["draw_seed", "limit_and_scale", "silence", "synapse_pairs", "synapse_scale"]

WORD = 0xFFFFFFFF


def draw_seed(device: torch.device) -> Tensor:
    """Draw a fresh seed, controlled by `torch.manual_seed` or `own_draws`; a tensor, so that compilers can trace it."""
    low, high = -(2**63), 2**63 - 1
    return torch.randint(low, high, (1,), dtype=torch.int64, device=device, generator=generator_on(device))


def limit_and_scale(dropout: float) -> tuple[int, float]:
    """The 16-bit threshold below which a synapse is silent, and the scale factor of the others.

    >>> limit_and_scale(0.5)
    (32768, 2.0)
    """
    limit = min(round(dropout * 65536), 65535)
    return limit, 65536 / (65536 - limit)  # from the rounded probability, so that expected values are preserved


def synapse_pairs(forest: Forest, device: torch.device) -> Tensor:
    """For each synapse, twice the first edge of its pair, plus one if it is the second: all that its key depends on."""
    edge = forest.synapse_edges
    second = (edge - forest.offsets[forest.node_of_edge[edge]]) % 2
    return torch.as_tensor(2 * (edge.astype(np.int64) - second) + second, device=device)


def synapse_scale(seed: Tensor, samples: int, pairs: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
    """The factor of each synapse in each sample, 0 or 1 / (1 - dropout), shape (samples, synapses)."""
    limit, scale = limit_and_scale(dropout)
    low, high = seed & WORD, (seed >> 32) & WORD
    sample = torch.arange(samples, device=pairs.device)
    sample_key = _mix((_mix(sample ^ low) + high) & WORD)
    synapse_key = _mix(_mix(((pairs >> 1) + high + 0x9E3779B9) & WORD) ^ low)
    # Each synapse has its own multiplier: with a common one, masks of synapses with similar keys are correlated.
    bits = ((synapse_key ^ sample_key.unsqueeze(1)) * (synapse_key | 1)) & WORD  # (samples, synapses)
    bits ^= bits >> 16
    bits = torch.where((pairs & 1).bool(), bits & 0xFFFF, bits >> 16)
    return (bits >= limit).to(dtype) * scale


def silence(values: Tensor, scale: Tensor) -> Tensor:
    """Scale the values that synapses read; silent synapses give 0 even if they read infinity or NaN.

    >>> silence(torch.tensor([1.0, float("inf")]), torch.tensor([2.0, 0.0]))
    tensor([2., 0.])
    """
    return (values * scale).masked_fill(scale == 0, 0)


def _mix(h: Tensor) -> Tensor:
    """Scramble 32 bits, held in 64, so that every input bit affects every output bit."""
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & WORD
    h = ((h ^ (h >> 15)) * 0x846CA68B) & WORD
    return h ^ (h >> 16)
