"""Two images side by side: 28x56 pixels in a hundred classes, made of MNIST or Fashion-MNIST."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import OptionError, ShapeError
from dendritree.training.examples import Examples

from .split import DataSplit

CLASSES = 10  # of one image
SEEDS = {"train": 1, "val": 2, "test": 3}  # results are published with these: never change them


def pair_images(split: DataSplit) -> DataSplit:
    """As many pairs in each part as it has images, with classes 10 * left + right; the same pairs every time.

    A part's pairs are drawn from its own images, so no image is in two parts. Each image is once on the left and once
    on the right, never next to itself: see `draw_pairs`, with seeds 1 for train, 2 for val and 3 for test.

    Shape:
        x of `split`: (n, side * side), pixels row by row; y: (n,), classes 0 ... 9.
        x of the result: (n, side * 2 * side), row by row through both images; y: (n,), classes 0 ... 99.

    >>> images = Examples(torch.rand(5, 784), torch.arange(5))
    >>> pairs = pair_images(DataSplit(images, images, images))
    >>> pairs.train.x.shape, pairs.train.y.tolist()
    (torch.Size([5, 1568]), [43, 1, 10, 24, 32])
    """
    parts: dict[str, Examples] = {name: getattr(split, name) for name in SEEDS}
    for name, part in parts.items():
        _check_images(name, part)
    return DataSplit(*(_pair(part, SEEDS[name]) for name, part in parts.items()))


def draw_pairs(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The images on the left and on the right of each pair: two permutations that agree nowhere.

    Both are drawn with NumPy, one after the other from a generator with this seed. Where they agree, about once, the
    right images of those pairs are rotated by one pair; a single such pair rotates with the next one. A single image
    can only be next to itself.

    >>> left, right = draw_pairs(5, seed=1)
    >>> left.tolist(), right.tolist()
    ([4, 0, 1, 2, 3], [3, 1, 0, 4, 2])
    """
    generator = np.random.default_rng(seed)
    left, right = generator.permutation(count), generator.permutation(count)
    clashes = np.flatnonzero(left == right)
    if len(clashes) == 1:
        clashes = np.append(clashes, (clashes + 1) % count)
    right[clashes] = np.roll(right[clashes], 1)
    return left, right


def _check_images(name: str, part: Examples) -> None:
    if part.x.ndim != 2 or math.isqrt(part.x.shape[1]) ** 2 != part.x.shape[1]:
        raise ShapeError(f"{name} must have the pixels of a square image in each row: got x {tuple(part.x.shape)}")
    if len(part) == 1:
        raise ShapeError(f"{name} must have two images or more, or none: got 1")
    if part.y.ndim != 1 or part.y.is_floating_point():
        found = f"y {tuple(part.y.shape)}, {part.y.dtype}"
        raise OptionError(f"{name} must have an integer class for each image: got {found}")
    beyond = part.y[(part.y < 0) | (part.y >= CLASSES)]
    if len(beyond):
        raise OptionError(f"{name} must have classes 0 ... {CLASSES - 1}: got {beyond[0].item()}")


def _pair(part: Examples, seed: int) -> Examples:
    left, right = (torch.from_numpy(order).to(part.x.device) for order in draw_pairs(len(part), seed))
    side = math.isqrt(part.x.shape[1])
    images = part.x.reshape(len(part), side, side)  # (images, height, width)
    both = torch.empty(len(part), side, 2 * side, dtype=images.dtype, device=images.device)  # (pairs, height, width)
    # Written in place: MNIST's training pairs are 314 MB, and indexing would need half of that again.
    torch.index_select(images, 0, left, out=both[:, :, :side])
    torch.index_select(images, 0, right, out=both[:, :, side:])
    return Examples(both.flatten(1), CLASSES * part.y[left] + part.y[right])
