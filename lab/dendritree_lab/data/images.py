"""Images in ten classes: MNIST, Fashion-MNIST, CIFAR-10 and digits; pairs of them, and transforms of their pixels."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dendritree.errors import OptionError, ShapeError, check_int, check_one_of
from dendritree.training.examples import Examples, fixed_order

from .catalog import FILE_SETS
from .fetch import obtain
from .formats import Bytes, read_batch, read_idx
from .split import DataSplit

SIDE = 28
VALIDATION = 10_000
MEAN, SD = 0.1307, 0.3081  # of MNIST's training pixels, rounded as in the paper
PAIR_SEEDS = 1, 2, 3  # of train, val and test; results are published with these: never change them


@dataclass(frozen=True, eq=False)
class ImageArrays:
    """The official parts of an image data set in the order of their files, as unsigned bytes."""

    train_images: Bytes
    """(60000, 28, 28); (50000, 3072) of CIFAR-10"""
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes


def read_images(name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> ImageArrays:
    """Read "mnist" or "fashion-mnist" as stored in their files; the arrays are copies that may be modified.

    Args:
        name: which of the two.
        data_dir: a folder to look in first; by default that of the environment variable DENDRITREE_DATA.
        download: whether to download files that are not on this machine.

    >>> read_images("mnist").train_labels[:10].tolist()  # doctest: +SKIP
    [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    """
    known = check_one_of("image data set", name, ("mnist", "fashion-mnist"))
    return ImageArrays(*map(read_idx, obtain(FILE_SETS[known], data_dir=data_dir, download=download).values()))


def split_images(images: ImageArrays, *, validation: int = VALIDATION) -> DataSplit:
    """Rows of pixels in [0, 1] with classes; the first `validation` training images in a fixed order are held out.

    The order is `fixed_order` (seed 0) of the training images; the rest of them, in that order, are for training.
    """
    order = fixed_order(len(images.train_labels))
    held_out, rest = order[:validation], order[validation:]
    return DataSplit(
        _examples(images.train_images[rest], images.train_labels[rest]),
        _examples(images.train_images[held_out], images.train_labels[held_out]),
        _examples(images.test_images, images.test_labels),
    )


def split_mnist(*files: bytes, validation: int = VALIDATION) -> DataSplit:
    """The split of the four IDX files of MNIST or Fashion-MNIST."""
    return split_images(ImageArrays(*map(read_idx, files)), validation=validation)


def split_four_nine(*files: bytes, validation: int = VALIDATION) -> DataSplit:
    """The fours (class 0) and nines (class 1) of each part of `split_mnist`, in the same order."""
    parts = split_mnist(*files, validation=validation).parts
    selected = [part.select((part.y == 4) | (part.y == 9)) for part in parts]
    return DataSplit(*(Examples(part.x, (part.y == 9).long()) for part in selected))


def split_pairs(*files: bytes, validation: int = VALIDATION) -> DataSplit:
    """Pairs of the images of each part of `split_mnist`."""
    return pair_images(split_mnist(*files, validation=validation))


def split_cifar(*batches: bytes, validation: int = VALIDATION) -> DataSplit:
    """The split of the five training batches of CIFAR-10 and, as the last argument, the test batch."""
    *train, test = (read_batch(batch) for batch in batches)
    images, labels = (np.concatenate(arrays) for arrays in zip(*train, strict=True))
    return split_images(ImageArrays(images, labels, *test), validation=validation)


def _examples(images: Bytes, labels: Bytes) -> Examples:
    x = torch.from_numpy(images.reshape(len(images), -1).astype(np.float32)).div_(255)  # (n, pixels)
    return Examples(x, torch.from_numpy(labels.astype(np.int64)))


def load_digits() -> DataSplit:
    """Scikit-learn's handwritten digits: 1,797 images of 8x8 pixels, in [0, 1], without a download.

    They are shuffled once with a fixed seed: in the file, neighbors come from the same writer.

    >>> split = load_digits()
    >>> len(split.train), len(split.val), len(split.test)
    (1197, 300, 300)
    """
    from sklearn import datasets

    digits = datasets.load_digits()
    order = fixed_order(len(digits.target))
    x = torch.as_tensor(digits.data[order] / 16.0, dtype=torch.float32)
    y = torch.as_tensor(digits.target[order], dtype=torch.long)
    return DataSplit(*(Examples(x[part], y[part]) for part in (slice(600, None), slice(0, 300), slice(300, 600))))


# ------------------------------------------------------------------------------------------------------------ pairs


def pair_images(split: DataSplit) -> DataSplit:
    """Pair the images of each part: as many pairs as images, with classes 10 * left + right, the same every time.

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
    return DataSplit(*(_pair(part, seed) for part, seed in zip(split.parts, PAIR_SEEDS, strict=True)))


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


def _pair(part: Examples, seed: int) -> Examples:
    left, right = (torch.from_numpy(order).to(part.x.device) for order in draw_pairs(len(part), seed))
    side = math.isqrt(part.x.shape[1])
    images = part.x.reshape(len(part), side, side)  # (images, height, width)
    both = torch.empty(len(part), side, 2 * side, dtype=images.dtype, device=images.device)  # (pairs, height, width)
    # Written in place: MNIST's training pairs are 314 MB, and indexing would need half of that again.
    torch.index_select(images, 0, left, out=both[:, :, :side])
    torch.index_select(images, 0, right, out=both[:, :, side:])
    return Examples(both.flatten(1), 10 * part.y[left] + part.y[right])


# ----------------------------------------------------------------------------------------------------------- pixels


def normalize(x: Tensor) -> Tensor:
    """Shift and scale pixels in [0, 1] by the mean 0.1307 and standard deviation 0.3081 of MNIST, as the paper does.

    >>> normalize(torch.tensor([0.1307, 1.0]))
    tensor([0.0000, 2.8215])
    """
    if not x.is_floating_point():
        raise OptionError(f"x must have floating-point pixels in [0, 1]: got {x.dtype}")
    return (x - MEAN) / SD


def upsample(x: Tensor, side: int = 32) -> Tensor:
    """Enlarge images of 28x28 pixels to side x side, each new pixel a copy of its nearest neighbor.

    Shape:
        x: (..., 28, 28), which gives (..., side, side); or rows of pixels (..., 784), which gives (..., side * side).

    >>> upsample(torch.rand(5, 784)).shape, upsample(torch.rand(5, 1, 28, 28), side=56).shape
    (torch.Size([5, 1024]), torch.Size([5, 1, 56, 56]))
    """
    side = check_int("side", side)
    flat = x.ndim > 0 and x.shape[-1] == SIDE * SIDE
    if not flat and x.shape[-2:] != (SIDE, SIDE):
        raise ShapeError(f"x must be images (..., 28, 28) or rows of pixels (..., 784): got {tuple(x.shape)}")
    images = x.reshape(-1, 1, SIDE, SIDE)  # (images, channel, height, width)
    larger = F.interpolate(images, size=(side, side), mode="nearest")
    return larger.reshape(*x.shape[:-1], side * side) if flat else larger.reshape(*x.shape[:-2], side, side)
