"""Layers of dendritic trees with the contract of `nn.Linear` and `nn.Conv2d`."""

from .conv import DendriticConv1d, DendriticConv2d
from .dendritic import DendriticLayer, Trace, trace
from .forest_layer import share_wiring

__all__ = ["DendriticConv1d", "DendriticConv2d", "DendriticLayer", "Trace", "share_wiring", "trace"]
