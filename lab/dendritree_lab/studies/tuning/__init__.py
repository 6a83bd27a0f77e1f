"""Search for the tree that suits your data: branching, depth, fan-in, wiring and how it learns, within a budget."""

from .search_result import TrialResult, Tuned
from .search import tune
from .space import Space

__all__ = ["Space", "TrialResult", "Tuned", "tune"]
