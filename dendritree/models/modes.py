"""Training and evaluation mode of a model, restored afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """Restore the mode of every module afterwards: a user may keep some frozen in evaluation mode."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode for the block.

    >>> layer = nn.Dropout()
    >>> with evaluating(layer):
    ...     inside = layer.training
    >>> inside, layer.training
    (False, True)
    """
    with modes_kept(model):
        model.eval()
        yield
