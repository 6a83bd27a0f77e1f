"""Sources of random numbers: torch's generator, which all threads share, or one that belongs to a block of code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["dropout", "generator_on", "own_draws", "seeded"]


class _Generators(dict[torch.device, torch.Generator]):
    """One generator per device, all with the same seed, created when first used."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def __missing__(self, device: torch.device) -> torch.Generator:
        self[device] = torch.Generator(device).manual_seed(self.seed)
        return self[device]


_OWN: ContextVar[_Generators | None] = ContextVar("own generators", default=None)


@contextlib.contextmanager
def own_draws(seed: int) -> Iterator[None]:
    """Draw the wirings, initial weights and dropout of a block from its own generators, in this thread only.

    The numbers are those that `torch.manual_seed` would give. Compiled code, convolutions and third-party modules still
    draw from torch's generator. `torch.utils.checkpoint` cannot draw the same dropout mask again within the block.

    >>> from dendritree import DendriticLayer
    >>> with own_draws(0):
    ...     ours = DendriticLayer(8, 2)
    >>> _ = torch.manual_seed(0)
    >>> bool((DendriticLayer(8, 2).weight == ours.weight).all())
    True
    """
    token = _OWN.set(_Generators(seed))
    try:
        yield
    finally:
        _OWN.reset(token)


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of a block and restore them afterwards: new ones within `own_draws`, else torch's."""
    if _OWN.get() is not None:
        with own_draws(seed):
            yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def generator_on(device: torch.device) -> torch.Generator | None:
    """The `generator` argument for torch's functions: that of the `own_draws` block, or None for torch's own."""
    own = None if torch.compiler.is_compiling() else _OWN.get()
    return None if own is None or device.type == "meta" else own[device]


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """`F.dropout` with our generator, which it does not accept; on the CPU, results are bit-identical."""
    generator = generator_on(x.device)
    if generator is None or not (training and p):
        return F.dropout(x, p, training)
    return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator).div_(1 - p)
