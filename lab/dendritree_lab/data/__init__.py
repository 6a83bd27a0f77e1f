"""Data with train, validation and test parts: built-in data sets, found or fetched and verified, and the user's own."""

from __future__ import annotations

import warnings
from typing import Any

from dendritree.training.examples import Examples

from .builtin import DATASETS, DataSet
from .images import Images, normalize, read_images, upsample
from .naming import load_dataset
from .scaling import Scaling
from .split import DataSplit, first_examples

__all__ = [
    "DATASETS",
    "DataSet",
    "DataSplit",
    "Examples",
    "Images",
    "Scaling",
    "first_examples",
    "load_dataset",
    "normalize",
    "read_images",
    "upsample",
]


def __getattr__(name: str) -> Any:
    renamed = {"load": "load_dataset", "normalise": "normalize"}
    if name not in renamed:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now {renamed[name]}; the next version drops the old name"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return globals()[renamed[name]]
