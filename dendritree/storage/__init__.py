"""`save` and `load`: models and the scikit-learn estimators that hold one, without pickle."""

from .folders import load, save

__all__ = ["load", "save"]
