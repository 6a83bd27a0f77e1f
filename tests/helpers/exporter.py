"""torch's exporter to ONNX reads the source of five hundred functions at every export, half of its time: here once."""

import copy
import functools
import sys

MODULE = "torch.onnx._internal.exporter._registration"


def keep_registry():
    """From the second export of a process on, its registry of functions is a copy. Imports nothing."""
    registry = getattr(sys.modules.get(MODULE), "ONNXRegistry", None)
    if registry is None or hasattr(registry, "made_once"):
        return
    registry.made_once = functools.cache(registry.from_torchlib)

    def from_torchlib(cls, *arguments, **options):
        kept = copy.copy(cls.made_once(*arguments, **options))
        kept.functions = {target: [*found] for target, found in kept.functions.items()}  # exports may register more
        return kept

    registry.from_torchlib = classmethod(from_torchlib)
