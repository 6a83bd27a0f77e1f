"""Swap the perceptrons of an existing model for dendritic neurons."""

from .conversion import convert
from .report import Change, ConversionReport, LeftAlone

__all__ = ["Change", "ConversionReport", "LeftAlone", "convert"]
