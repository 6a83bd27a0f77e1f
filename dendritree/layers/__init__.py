"""Neuron families as `nn.Module`s, one file each."""

from .dendritic import DendriticLayer
from .distributed import share_wiring

__all__ = ["DendriticLayer", "share_wiring"]
