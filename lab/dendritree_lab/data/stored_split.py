"""A split stored in a file, for the processes of a study: it reads back bit-identical, whatever the original format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.files import whole_file
from dendritree.training.examples import Examples

from .split import DataSplit

PARTS = ("train", "val", "test")


def write_split(split: DataSplit, path: Path) -> None:
    """Write the examples of a split, its image shape and its names.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "data.npz"
    >>> split = DataSplit(*[Examples(torch.rand(5, 4), torch.arange(5))] * 3, image_shape=(1, 2, 2), classes=tuple("abcde"))
    >>> write_split(split, file)
    >>> torch.equal(read_split(file).val.x, split.val.x), read_split(file).classes
    (True, ('a', 'b', 'c', 'd', 'e'))
    """
    arrays: dict[str, NDArray[Any]] = {
        "classes": np.array(split.classes, str),
        "features": np.array(split.features, str),
        "image_shape": np.array(split.image_shape or (), np.int64),
    }
    for part, examples in zip(PARTS, split.parts, strict=True):
        arrays |= {f"x_{part}": _in_bytes(examples.x.cpu().numpy()), f"y_{part}": examples.y.cpu().numpy()}
    with whole_file(path, "the copy of the data") as scratch, scratch.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_split(path: str | Path) -> DataSplit:
    """The split that `write_split` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        examples = []
        for part in PARTS:
            x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
            x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x
            examples.append(Examples(torch.from_numpy(x), torch.from_numpy(y)))
        classes, features = (tuple(map(str, arrays[name].tolist())) for name in ("classes", "features"))
        shape: Any = tuple(map(int, arrays["image_shape"].tolist())) or None
        return DataSplit(*examples, features=features, classes=classes, image_shape=shape)


def _in_bytes(x: NDArray[Any]) -> NDArray[Any]:
    """Pixels as bytes, a quarter of the size, if nothing is lost."""
    if x.dtype != np.float32 or not x.size or x.min() < 0 or x.max() > 1:
        return x
    pixels = np.round(x * 255).astype(np.uint8)
    return pixels if bool((pixels.astype(np.float32) / np.float32(255) == x).all()) else x
