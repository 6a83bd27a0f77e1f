"""Neuron families as `nn.Module`s, one file each."""

from .dann import DANN
from .dendritic import DendriticLayer
from .denn import DENN
from .distributed import share_wiring
from .dmnn import DMNN
from .dnm import DNM
from .ktree import KTree

__all__ = ["DANN", "DENN", "DMNN", "DNM", "DendriticLayer", "KTree", "share_wiring"]
