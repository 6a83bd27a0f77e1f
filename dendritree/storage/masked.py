"""Bridge to the authors' format: dense masked matrices, `weights.{i}.weight` and `weights.{i}.bias`.

Their layer has one dense linear map per level over the inputs of all neurons side by side (a classifier first repeats
its inputs for every neuron). Their checkpoints load into our layers, and our layers can be written in their format.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import FormatError, OptionError
from ..layers import DendriticLayer
from ..ops.reference import MaskedLevel, masked_levels
from ..wiring import Shared, Wiring, resolve_wiring


def to_masked(layer: DendriticLayer) -> dict[str, Tensor]:
    """The dense matrices of a layer in the authors' layout, zero outside the masks.

    >>> {key: tuple(value.shape) for key, value in to_masked(DendriticLayer(4, 1, branching=2)).items()}
    {'weights.0.weight': (2, 4), 'weights.0.bias': (2,), 'weights.1.weight': (1, 2), 'weights.1.bias': (1,)}
    """
    state = {}
    for i, level in enumerate(_balanced_levels(layer)):
        state[f"weights.{i}.weight"] = level.weight
        if level.bias is not None:
            state[f"weights.{i}.bias"] = level.bias.clone()
    return state


@torch.no_grad()
def load_masked(layer: DendriticLayer, state: Mapping[str, Tensor]) -> None:
    """Copy weights saved in the authors' layout into a layer of the same tree.

    Values outside the masks are ignored, as their forward pass does. Nothing is copied unless everything fits.

    >>> old, new = DendriticLayer(4, 1, branching=2), DendriticLayer(4, 1, branching=2)
    >>> load_masked(new, to_masked(old))
    >>> torch.equal(old.weight, new.weight)
    True
    """
    if layer.forest.template is not None:
        raise OptionError("the authors' layout has one weight per edge: got a layer whose dendrites share weights")
    state, expected = _without_prefix(state), to_masked(layer)
    for key in sorted(expected.keys() | state.keys()):
        ours, theirs = (tuple(part[key].shape) if key in part else "none" for part in (expected, state))
        if ours != theirs:
            raise FormatError(f"{key} must have shape {ours} for this layer: got {theirs}")
    # A mask selects row by row, which is the order of the edges in a balanced tree.
    masks = [level.mask.bool() for level in _balanced_levels(layer)]
    weights = [state[f"weights.{i}.weight"].to(layer.weight)[mask] for i, mask in enumerate(masks)]
    layer.weight.copy_(torch.cat(weights))
    if layer.bias is not None:
        layer.bias.copy_(torch.cat([state[f"weights.{i}.bias"].to(layer.bias) for i in range(len(masks))]))


def from_masked(state: Mapping[str, Tensor], *, wiring: str | Wiring = "partition", **options: Any) -> DendriticLayer:
    """Build a layer from weights saved in the authors' layout; the tree is read off the shapes.

    Args:
        state: `weights.{i}.weight` of shape (nodes, children) for each level, `weights.{i}.bias` if there are any.
        wiring: `"shared"` if the inputs were repeated for every neuron (their classifiers), else `"partition"`.
        options: further options of `DendriticLayer`, such as `activation` and `dropout`.

    Example:
        >>> from_masked(to_masked(DendriticLayer(64, 1, branching=8))).branching
        (8, 8)
    """
    state, wiring = _without_prefix(state), resolve_wiring(wiring)
    shapes: list[tuple[int, ...]] = []
    while (key := f"weights.{len(shapes)}.weight") in state:
        shapes.append(tuple(state[key].shape))
    sizes = [shapes[0][1], *(shape[0] for shape in shapes)] if shapes and all(len(s) == 2 for s in shapes) else []
    chained = [(nodes, children) for children, nodes in itertools.pairwise(sizes)]
    if not sizes or chained != shapes or any(nodes < 1 or children % nodes for nodes, children in shapes):
        raise FormatError(
            f"weights.0.weight, weights.1.weight ... must chain from the inputs to the roots: got {shapes}"
        )
    neurons = sizes[-1]
    in_features = sizes[0] // neurons if isinstance(wiring, Shared) else sizes[0]
    layer = DendriticLayer(
        in_features,
        neurons,
        branching=[children // nodes for nodes, children in shapes],
        wiring=wiring,
        bias="weights.0.bias" in state,
        **{"dtype": state["weights.0.weight"].dtype, "device": state["weights.0.weight"].device, **options},
    )
    load_masked(layer, state)
    return layer


def _balanced_levels(layer: DendriticLayer) -> list[MaskedLevel]:
    """The levels of a layer as masked matrices."""
    bias = None if layer.node_bias is None else layer.node_bias.detach()
    levels = masked_levels(layer.edge_weight.detach(), bias, layer.forest)
    if any(len(level.carried) for level in levels):
        raise OptionError("the authors' layout only supports balanced trees: got a tree with leaves at several levels")
    return levels


def _without_prefix(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The entries of the layer: in the authors' classifiers they have the prefix `neurons.`, next to those of a CNN."""
    prefixes = [key.removesuffix("weights.0.weight") for key in state if key.endswith("weights.0.weight")]
    if len(prefixes) > 1:
        raise FormatError(f"the state dict must hold one layer, one weights.0.weight: got {len(prefixes)} of them")
    prefix = prefixes[0] if prefixes else ""
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
