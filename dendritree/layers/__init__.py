"""Neuron families as `nn.Module`s, one file each."""

from .dendritic import DendriticLayer

__all__ = ["DendriticLayer"]
