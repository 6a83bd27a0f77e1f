"""How much every input, synapse and dendrite contributed to an output."""

from .contributions import TOLERANCE, Explanation, ModelExplanation
from .explaining import explain

__all__ = ["TOLERANCE", "Explanation", "ModelExplanation", "explain"]
