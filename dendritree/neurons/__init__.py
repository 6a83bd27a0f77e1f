"""Neurons of other authors with the interface of `DendriticLayer`, one family per file, and a registry of them."""

from .dann import DANN
from .denn import DENN
from .dmnn import DMNN
from .dnm import DNM
from .families import register_neuron
from .ktree import KTree

__all__ = ["DANN", "DENN", "DMNN", "DNM", "KTree", "register_neuron"]
