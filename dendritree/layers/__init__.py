"""Neuron families as `nn.Module`s, one file each."""

from .convolution import DendriticConv1d, DendriticConv2d
from .dann import DANN
from .dendritic import DendriticLayer, Trace, trace
from .denn import DENN
from .dmnn import DMNN
from .dnm import DNM
from .forest import share_wiring
from .ktree import KTree

__all__ = [
    "DANN",
    "DENN",
    "DMNN",
    "DNM",
    "DendriticConv1d",
    "DendriticConv2d",
    "DendriticLayer",
    "KTree",
    "Trace",
    "share_wiring",
    "trace",
]
