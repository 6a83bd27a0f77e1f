"""Dendritic networks as scikit-learn estimators, and models of a user's own table.

The estimators extend scikit-learn's classes: importing one needs the extra `sklearn`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import DendriticClassifier
    from .regressor import DendriticRegressor

__all__ = ["DendriticClassifier", "DendriticRegressor"]

MODULES = {"DendriticClassifier": ".classifier", "DendriticRegressor": ".regressor"}


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return getattr(importlib.import_module(MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
