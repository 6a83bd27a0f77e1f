"""Neuron families as `nn.Module`s, one file each."""

from .dendritic import DendriticLayer
from .trace import Trace, trace

__all__ = ["DendriticLayer", "Trace", "trace"]
