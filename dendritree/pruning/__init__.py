"""Smaller trees: weak synapses and whole branches go, and what they answered to a reference input stays as a bias."""

from .curve import PruningPoint, pruning_curve
from .importance import importances
from .surgery import prune

__all__ = ["PruningPoint", "importances", "prune", "pruning_curve"]
