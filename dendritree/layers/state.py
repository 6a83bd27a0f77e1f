"""The trees of a layer in its state dict: how they are written, and how they are checked before a layer adopts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import FormatError
from ..tree import Forest, IntArray
from ..wiring.interface import Wiring, dendrite_of_synapse

STATE_FORMAT = 1
"""Version of the `forest_*` entries in a state dict."""

FOREST_KEYS = ("forest_format", "forest_in_features", "forest_source", "forest_offsets", "forest_roots")
"""Entries of every layer."""

WINDOWS_KEY, TEMPLATE_KEY = "forest_windows", "forest_template"
"""Entries of a layer that has windows, and of one that has tied nodes."""


def forest_state(forest: Forest, windows: IntArray | None) -> dict[str, Tensor]:
    """The entries for the trees of a layer."""
    values = (STATE_FORMAT, forest.in_features, forest.source, forest.offsets, forest.roots)
    entries: dict[str, Any] = dict(zip(FOREST_KEYS, values, strict=True))
    if windows is not None:
        entries[WINDOWS_KEY] = windows
    if forest.template is not None:
        entries[TEMPLATE_KEY] = forest.template
    # On the CPU whatever torch's default device is: a meta tensor would lose the trees.
    return {key: torch.tensor(value, device="cpu") for key, value in entries.items()}


def read_forest(state: Mapping[str, Tensor]) -> Forest:
    """The forest that `forest_state` wrote; anything that is not a forest is rejected."""
    if lacking := [key for key in FOREST_KEYS if key not in state]:
        raise FormatError(f"a state dict must have all entries of a forest or none: {lacking[0]} is missing")
    version = integers(state, FOREST_KEYS[0]).tolist()
    if version != STATE_FORMAT:
        raise FormatError(f"the state dict must have forest format {STATE_FORMAT}: got {version}")
    in_features, source, offsets, roots = (integers(state, key) for key in FOREST_KEYS[1:])
    template = integers(state, TEMPLATE_KEY) if TEMPLATE_KEY in state else None
    return Forest(in_features.tolist(), source, offsets, roots, template)  # Forest checks them


def read_windows(state: Mapping[str, Tensor], forest: Forest, image: tuple[int, int, int]) -> IntArray:
    """The windows that `forest_state` wrote; those that do not fit the forest or lie outside the image are rejected.

    A synapse may read outside its window: it may have moved anywhere since it was drawn.
    """
    windows = integers(state, WINDOWS_KEY).astype(np.int64)
    if windows.shape != (forest.nodes, 4):
        raise FormatError(f"{WINDOWS_KEY} must have shape ({forest.nodes}, 4): got {windows.shape}")
    read = windows[np.unique(dendrite_of_synapse(forest))]  # rows of nodes without synapses are not used
    outside = ((read[:, :2] < 0) | (read[:, 2:] < 1) | (read[:, :2] > image[1:] - read[:, 2:])).any(1)
    if outside.any():
        raise FormatError(
            f"{WINDOWS_KEY} must be top, left, height and width inside an image of {image[1]} x {image[2]}: got "
            f"{read[outside][0].tolist()}"
        )
    checked = windows.astype(np.int32)
    checked.setflags(write=False)
    return checked


def check_forest(
    state: Mapping[str, Tensor], forest: Forest, windows: IntArray | None, wiring: Wiring
) -> tuple[Forest, IntArray | None] | None:
    """Reject a different tree or wiring; return the forest and windows to adopt if the wiring was drawn."""
    theirs = read_forest(state)
    if wiring.drawn and is_same_tree(forest, theirs):
        image = wiring.image(forest.in_features)
        if image is None or windows is None or WINDOWS_KEY not in state:
            return theirs, windows
        return theirs, read_windows(state, theirs, image)
    difference = forest.difference(theirs)
    if difference is not None:
        raise FormatError(f"the state dict must be of the same tree and wiring: {difference} (ours against theirs)")
    return None


def integers(state: Mapping[str, Tensor], key: str) -> npt.NDArray[Any]:
    """An entry of a state dict; anything that is not integers is rejected."""
    tensor = state[key]
    if tensor.is_meta or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise FormatError(f"{key} in a state dict must hold integers: got {tensor.dtype} on {tensor.device}")
    return tensor.cpu().numpy()


def is_same_tree(ours: Forest, theirs: Forest) -> bool:
    """Whether two forests differ in nothing but the inputs of their synapses."""

    def trees(forest: Forest) -> tuple[Any, ...]:
        children = forest.source[forest.source >= forest.in_features]
        return forest.in_features, forest.offsets, forest.roots, forest.bias_of_node, forest.synapse_edges, children

    return all(map(np.array_equal, trees(ours), trees(theirs)))
