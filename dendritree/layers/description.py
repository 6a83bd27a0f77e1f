"""A layer in one line: the call that makes it, the trees that were grown, their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def describe(layer: Any) -> str:
    """The arguments of a `DendriticLayer`, then its trees and parameters.

    >>> from dendritree import DendriticLayer
    >>> describe(DendriticLayer(16, 3, branching=4, bias=False))
    '16, 3, branching=4, wiring=Shared(), bias=False; 3 trees of 16 synapses, 4 + 1 dendrites; 60 parameters'
    """
    options = []
    if not layer.regrown:
        options.append(f"branching={layer.branching!r}")
        if layer.wiring.any_fan_in:
            options.append(f"fan_in={layer.fan_in // (layer.repeats or 1)}")
        elif layer.ragged:
            options.append("ragged=True")
    options.append(f"wiring={layer.wiring if len(layer.wirings) == 1 else list(layer.wirings)}")
    if layer.repeats is not None and not layer.regrown:
        options.append(f"repeats={layer.repeats}")
    return call_and_trees(layer, options)


def call_and_trees(layer: Any, options: Sequence[str]) -> str:
    """A layer's sizes, these options and those that all layers of trees have; its trees and parameters."""
    call = [f"{layer.in_features}, {layer.out_features}", *options]
    if layer.bias is None:
        call.append("bias=False")
    if layer.dropout:
        call.append(f"dropout={layer.dropout}, dropout_per={layer.dropout_per!r}")
    if not layer.root_activation and layer.repeats is None:
        call.append("root_activation=False")
    if layer.backend != "auto":
        call.append(f"backend={layer.backend!r}")
    parameters = layer.forest.parameters(bias=layer.bias is not None)
    return f"{', '.join(call)}; {layer.forest.describe()}; {parameters:,} parameters"
