"""Data sets by name, with fixed train, validation and test parts; their files are found or fetched, and verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import check_one_of
from .catalogue import FILE_SETS
from .digits import load_digits
from .images import Images, normalise, parse_images, read_images, split_four_nine, split_images, upsample
from .obtain import obtain
from .pairs import pair_images
from .split import Examples, Split, first_examples
from .tables import split_adult, split_california

__all__ = [
    "DATASETS",
    "DataSet",
    "Examples",
    "Images",
    "Split",
    "first_examples",
    "load",
    "normalise",
    "read_images",
    "upsample",
]


@dataclass(frozen=True)
class DataSet:
    """What a data set is, and the function that makes a split of the content of its files.

    >>> DATASETS["mnist-pairs"].image_shape, DATASETS["mnist-pairs"].classes
    ((1, 28, 56), 100)
    """

    summary: str
    in_features: int
    build: Callable[..., Split]
    """Takes the content of each file, in the order of the catalogue."""
    image_shape: tuple[int, int, int] | None = None
    """(channels, height, width) of the image that a row of x is, pixels row by row; None where x is no image."""
    classes: int | None = None
    """How many classes y has, numbered from 0; None where y is a quantity, for regression."""
    package: str = ""
    """The Python package that it comes with, for a data set without files of its own."""


DATASETS: dict[str, DataSet] = {
    "mnist": DataSet(
        "handwritten digits, 70,000 images of 28x28, 10 classes",
        784,
        lambda *files: split_images(parse_images(*files)),
        image_shape=(1, 28, 28),
        classes=10,
    ),
    "mnist-4-9": DataSet(
        "MNIST's fours (0) and nines (1), 13,782 images",
        784,
        lambda *files: split_four_nine(parse_images(*files)),
        image_shape=(1, 28, 28),
        classes=2,
    ),
    "mnist-pairs": DataSet(
        "two of MNIST's digits side by side, 70,000 images of 28x56, 100 classes",
        1568,
        lambda *files: pair_images(split_images(parse_images(*files))),
        image_shape=(1, 28, 56),
        classes=100,
    ),
    "fashion-mnist": DataSet(
        "pieces of clothing, 70,000 images of 28x28, 10 classes",
        784,
        lambda *files: split_images(parse_images(*files)),
        image_shape=(1, 28, 28),
        classes=10,
    ),
    "fashion-pairs": DataSet(
        "two pieces of clothing side by side, 70,000 images of 28x56, 100 classes",
        1568,
        lambda *files: pair_images(split_images(parse_images(*files))),
        image_shape=(1, 28, 56),
        classes=100,
    ),
    "digits": DataSet(
        "handwritten digits, 1,797 images of 8x8, 10 classes",
        64,
        load_digits,
        image_shape=(1, 8, 8),
        classes=10,
        package="sklearn",
    ),
    "adult": DataSet("census: who earns over 50,000 dollars, 48,842 people", 108, split_adult, classes=2),
    "california-housing": DataSet("median house values, 20,640 districts, regression", 8, split_california),
}
"""Data sets by name."""


def load(name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Split:
    """Load a data set, the same parts every time.

    | name | x | y | train, val, test |
    |---|---|---|---|
    | mnist, fashion-mnist | 784 pixels in [0, 1] | class 0 ... 9 | 50,000, 10,000, 10,000 |
    | mnist-4-9 | 784 pixels in [0, 1] | 0 for a four, 1 for a nine | those of mnist's parts |
    | mnist-pairs, fashion-pairs | 28 x 56 pixels in [0, 1] | 10 * left + right class | 50,000, 10,000, 10,000 |
    | digits | 64 pixels in [0, 1] | class 0 ... 9 | 1,197, 300, 300 |
    | adult | 6 standardised numbers, 102 categories as 0 or 1 | 1 for over 50,000 dollars | 26,049, 6,512, 16,281 |
    | california-housing | 8 columns as they are | median value / 100,000 dollars, a float | 12,384, 4,128, 4,128 |

    Parts that are not official are cut by one fixed permutation of the examples (`data.split.fixed_order`, seed 0).
    Pairs are made of the images of one part each, every image once on the left and once on the right
    (`data.pairs.pair_images`).
    Column names, where there are any, are the split's `features`.

    Args:
        name: the data set.
        data_dir: a folder to look in first; without it the one that the environment variable DENDRITREE_DATA names.
        download: whether to fetch what this machine does not have.

    >>> load("digits").train.x.shape
    torch.Size([1197, 64])
    """
    known = check_one_of("data set", name, DATASETS)
    file_set = FILE_SETS.get(known)
    files = obtain(file_set, data_dir=data_dir, download=download) if file_set else {}
    return DATASETS[known].build(*(file.content for file in files.values()))
