"""`save` and `load`: models, the scikit-learn estimators that hold one, and table models, without pickle."""

from .epochs import KeepEpochs
from .folders import load, load_model, save

__all__ = ["KeepEpochs", "load", "load_model", "save"]
