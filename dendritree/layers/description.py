"""A layer in one line: the call that makes it, or its trees."""

from __future__ import annotations

from typing import Any

from ..levels import is_nested

__all__ = ["describe"]


def describe(layer: Any) -> str:
    """The constructor's arguments of a `DendriticLayer`; its trees where these are others, as after pruning.

    >>> from dendritree import DendriticLayer
    >>> describe(DendriticLayer(16, 1, branching=4, bias=False))
    '16, 1, branching=4, depth=2, wiring=Partition(), bias=False'
    """
    options = [f"{layer.in_features}, {layer.out_features}"]
    if layer.regrown:
        options.append(f"forest={layer.forest.describe()!r}")
    else:
        options.append(f"branching={layer.branching!r}")
        if not is_nested(layer.branching):
            options.append(f"depth={layer.depth - (layer.repeats is not None)}")
        if layer.wiring.any_fan_in:
            options.append(f"fan_in={layer.fan_in // (layer.repeats or 1)}")
        elif layer.ragged:
            options.append("ragged=True")
    options.append(f"wiring={layer.wiring if len(layer.wirings) == 1 else list(layer.wirings)}")
    if layer.repeats is not None and not layer.regrown:
        options.append(f"repeats={layer.repeats}")
    if layer.bias is None:
        options.append("bias=False")
    if layer.dropout:
        options.append(f"dropout={layer.dropout}, dropout_per={layer.dropout_per!r}")
    if not layer.root_activation:
        options.append("root_activation=False")
    if layer.backend != "auto":
        options.append(f"backend={layer.backend!r}")
    return ", ".join(options)
