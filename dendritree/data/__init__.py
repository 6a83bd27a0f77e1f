"""Data sets by name, with fixed train, validation and test parts."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import check_one_of
from .digits import load_digits
from .split import Examples, Split

__all__ = ["DATASETS", "Examples", "Split", "load"]

DATASETS: dict[str, Callable[[], Split]] = {"digits": load_digits}
"""Data sets by name."""


def load(name: str) -> Split:
    """Load a data set.

    >>> load("digits").train.x.shape
    torch.Size([1197, 64])
    """
    return DATASETS[check_one_of("data set", name, DATASETS)]()
