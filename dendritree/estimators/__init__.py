"""Dendritic networks as scikit-learn estimators: in pipelines, searches and cross-validation like any other.

Needs the extra `sklearn`: this package is the one part of dendritree that imports scikit-learn when it is imported.
"""

from .classifier import DendriticClassifier
from .regressor import DendriticRegressor

__all__ = ["DendriticClassifier", "DendriticRegressor"]
