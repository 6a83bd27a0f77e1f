"""Images in ten classes: MNIST, Fashion-MNIST, CIFAR-10 and scikit-learn's digits, and transforms of their pixels."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dendritree.errors import OptionError, ShapeError, check_int, check_one_of, import_extra
from dendritree.training.examples import Examples, fixed_order

from .catalog import FILE_SETS
from .formats import Bytes, read_batch, read_idx
from .obtain import obtain
from .split import DataSplit

SIDE = 28
VALIDATION = 10_000
MEAN, SD = 0.1307, 0.3081  # of MNIST's training pixels, rounded as in the paper


@dataclass(frozen=True, eq=False)
class Images:
    """The official parts of an image data set in the order of their files, as unsigned bytes."""

    train_images: Bytes
    """(60000, 28, 28); (50000, 3072) of CIFAR-10"""
    train_labels: Bytes
    """(60000,)"""
    test_images: Bytes
    """(10000, 28, 28)"""
    test_labels: Bytes
    """(10000,)"""


def read_images(name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Images:
    """Read "mnist" or "fashion-mnist" as stored in their files; the arrays are copies that may be modified.

    Args:
        name: which of the two.
        data_dir: a folder to look in first; by default that of the environment variable DENDRITREE_DATA.
        download: whether to download files that are not on this machine.

    >>> read_images("mnist").train_labels[:10].tolist()  # doctest: +SKIP
    [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    """
    known = check_one_of("image data set", name, ("mnist", "fashion-mnist"))
    files = obtain(FILE_SETS[known], data_dir=data_dir, download=download)
    return parse_images(*(file.content for file in files.values()))


def parse_images(train_images: bytes, train_labels: bytes, test_images: bytes, test_labels: bytes) -> Images:
    """The images of four IDX files."""
    return Images(*map(read_idx, (train_images, train_labels, test_images, test_labels)))


def split_images(images: Images, *, validation: int = VALIDATION) -> DataSplit:
    """Rows of pixels in [0, 1] with classes; the first `validation` training images in a fixed order are held out.

    The order is `fixed_order` (seed 0) of the training images; the rest of them, in that order, are for training.
    """
    order = fixed_order(len(images.train_labels))
    chosen, rest = order[:validation], order[validation:]
    return DataSplit(
        _examples(images.train_images[rest], images.train_labels[rest]),
        _examples(images.train_images[chosen], images.train_labels[chosen]),
        _examples(images.test_images, images.test_labels),
    )


def split_four_nine(images: Images, *, validation: int = VALIDATION) -> DataSplit:
    """The fours (class 0) and nines (class 1) of each part of `split_images`, in the same order."""
    parts = split_images(images, validation=validation).parts
    chosen = [part.select((part.y == 4) | (part.y == 9)) for part in parts]
    return DataSplit(*(Examples(part.x, (part.y == 9).long()) for part in chosen))


def split_cifar(*batches: bytes, validation: int = VALIDATION) -> DataSplit:
    """The split of the five training batches of CIFAR-10 and, as the last argument, the test batch."""
    *train, test = (read_batch(batch) for batch in batches)
    images, labels = (np.concatenate(arrays) for arrays in zip(*train, strict=True))
    return split_images(Images(images, labels, *test), validation=validation)


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
    digits = import_extra("sklearn.datasets", extra="data").load_digits()
    order = fixed_order(len(digits.target))
    x = torch.as_tensor(digits.data[order] / 16.0, dtype=torch.float32)
    y = torch.as_tensor(digits.target[order], dtype=torch.long)
    return DataSplit(*(Examples(x[part], y[part]) for part in (slice(600, None), slice(0, 300), slice(300, 600))))


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
