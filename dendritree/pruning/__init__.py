"""Smaller trees: weak synapses and whole branches are replaced by biases, their response to a reference input."""

from .curve import PruningPoint, pruning_curve
from .importance import importances
from .surgery import prune

__all__ = ["PruningPoint", "importances", "prune", "pruning_curve"]
