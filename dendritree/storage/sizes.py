"""Sizes in a config, compared with the tensors before anything is built: a small file must not allocate gigabytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from ..errors import FormatError
from ..layers.state import FOREST_KEYS
from .folders import CONFIG_FILE

SIZES = frozenset({
    "in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels", "normalized_shape",
    "num_embeddings", "embedding_dim", "hidden", "channels", "fan_in", "branching", "image_shape", "repeats",
})  # fmt: skip
"""Arguments of models and layers that determine how much is allocated."""
HARMLESS = 4096
"""Sizes up to this one are only checked by the comparison of shapes after building."""
MOST_UNREAD = 2**22
"""Largest number of inputs that trees may state without a tensor of that size: a layer takes some bytes per input."""


def check_sizes(arguments: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Raise for a size that exceeds every tensor and the number of inputs that the trees state.

    All sizes appear in the shapes of tensors, except for the inputs of trees, which are one number: it counts up to
    `MOST_UNREAD`.

    >>> import torch
    >>> check_sizes({"in_features": 2**31}, {"weight": torch.zeros(2, 8)})
    Traceback (most recent call last):
    dendritree.errors.FormatError: in_features in config.json must be a size of the weights, at most 16: got 2147483648
    """
    known = max((tensor.numel() for tensor in tensors.values()), default=0)
    for name, tensor in tensors.items():
        if name.rpartition(".")[2] == FOREST_KEYS[1] and tensor.numel() == 1:
            known = max(known, min(int(tensor), MOST_UNREAD))
    for name, size in _sizes(arguments):
        if size > max(known, HARMLESS):
            raise FormatError(f"{name} in {CONFIG_FILE} must be a size of the weights, at most {known}: got {size}")


def _sizes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in arguments.items():
        if name in SIZES:
            for each in value if isinstance(value, list | tuple) else [value]:
                if isinstance(each, int):
                    yield name, each
