"""Neuron families as `nn.Module`s, one file each."""

from .dann import DANN
from .dendritic import DendriticLayer
from .denn import DENN
from .distributed import share_wiring
from .dmnn import DMNN
from .dnm import DNM
from .ktree import KTree
from .tracing import Trace, trace

__all__ = ["DANN", "DENN", "DMNN", "DNM", "DendriticLayer", "KTree", "Trace", "share_wiring", "trace"]
