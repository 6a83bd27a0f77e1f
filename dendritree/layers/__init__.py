"""Neuron families as `nn.Module`s, one file each."""

from .dendritic import DendriticLayer
from .dmnn import DMNN
from .dnm import DNM

__all__ = ["DMNN", "DNM", "DendriticLayer"]
