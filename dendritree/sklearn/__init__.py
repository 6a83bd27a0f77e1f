"""Dendritic networks as scikit-learn estimators, and models of a user's own table.

The estimators extend scikit-learn's classes: importing one needs the extra `sklearn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import DendriticClassifier
    from .regressor import DendriticRegressor

__all__ = ["DendriticClassifier", "DendriticRegressor"]


def __getattr__(name: str) -> Any:
    if name == "DendriticClassifier":
        from .classifier import DendriticClassifier

        return DendriticClassifier
    if name == "DendriticRegressor":
        from .regressor import DendriticRegressor

        return DendriticRegressor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
