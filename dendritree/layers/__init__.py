"""Neuron families as `nn.Module`s, one file each."""

from .dann import DANN
from .dendritic import DendriticLayer
from .denn import DENN
from .ktree import KTree

__all__ = ["DANN", "DENN", "DendriticLayer", "KTree"]
