"""Where random numbers come from: torch's generator, which all threads share, or one of a block's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["dropout", "generator_on", "own_draws", "seeded"]


class _Generators(dict[torch.device, torch.Generator]):
    """A generator per device, all of one seed, made when first asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def __missing__(self, device: torch.device) -> torch.Generator:
        self[device] = torch.Generator(device).manual_seed(self.seed)
        return self[device]


_OWN: ContextVar[_Generators | None] = ContextVar("own generators", default=None)


@contextlib.contextmanager
def own_draws(seed: int) -> Iterator[None]:
    """Let wirings, initial weights and dropout of a block draw from its own generators, only in this thread.

    The numbers are those that `torch.manual_seed` would give. Compiled code, convolutions and modules of others draw
    from torch's generator all the same. `torch.utils.checkpoint` cannot draw a mask of dropout a second time here.

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
    """Seed what a block draws from, and put it back afterwards: within `own_draws` new generators, else torch's."""
    if _OWN.get() is not None:
        with own_draws(seed):
            yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def generator_on(device: torch.device) -> torch.Generator | None:
    """What torch's functions take as `generator`: that of the block `own_draws`, or None for torch's."""
    own = None if torch.compiler.is_compiling() else _OWN.get()
    return None if own is None or device.type == "meta" else own[device]


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """`F.dropout`, which takes no generator, to the same bits on the CPU."""
    generator = generator_on(x.device)
    if generator is None or not (training and p):
        return F.dropout(x, p, training)
    return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator).div_(1 - p)
