"""Search for the tree that suits your data: branching, depth, fan-in, wiring and how it learns, within a budget."""

from .search import tune
from .search_result import TrialResult, Tuned
from .space import Space

__all__ = ["Space", "TrialResult", "Tuned", "tune"]
