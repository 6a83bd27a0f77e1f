"""Dendritic trees as arrays: levels, edges, and the forest of a layer. Uses NumPy, not torch."""

from .edges import BoolArray, IntArray
from .forest import Forest

__all__ = ["BoolArray", "Forest", "IntArray"]
