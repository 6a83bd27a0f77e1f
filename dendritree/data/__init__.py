"""Data sets by name, with fixed train, validation and test parts; their files are found or fetched, and verified."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import check_one_of
from .catalog import FILE_SETS
from .images import Images, load_digits, normalize, parse_images, read_images, split_four_nine, split_images, upsample
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
    "load_dataset",
    "normalize",
    "read_images",
    "upsample",
]


@dataclass(frozen=True)
class DataSet:
    """What a data set is, and the function that makes a split of the content of its files.

    >>> DATASETS["mnist-pairs"].image_shape, DATASETS["mnist-pairs"].in_features, DATASETS["mnist-pairs"].classes
    ((1, 28, 56), 1568, 100)
    """

    summary: str
    build: Callable[..., Split]
    """Takes the content of each file, in the order of the catalog."""
    in_features: int
    """Columns of x."""
    classes: int | None = None
    """Number of classes in y, numbered from 0; None where y is a quantity, for regression."""
    image_shape: tuple[int, int, int] | None = None
    """(channels, height, width) of the image in each row of x, pixels row by row; None where x is not an image."""
    package: str = ""
    """The Python package that contains it, for a data set without files of its own."""


def _of_images(split: Callable[[Images], Split]) -> Callable[..., Split]:
    return lambda *files: split(parse_images(*files))


def _pairs(images: Images) -> Split:
    return pair_images(split_images(images))


SQUARE, PAIR = (1, 28, 28), (1, 28, 56)
DATASETS: dict[str, DataSet] = {
    "mnist": DataSet(
        "handwritten digits, 70,000 images of 28x28, 10 classes", _of_images(split_images), 784, 10, SQUARE
    ),
    "mnist-4-9": DataSet("MNIST's fours (0) and nines (1), 13,782 images", _of_images(split_four_nine), 784, 2, SQUARE),
    "mnist-pairs": DataSet(
        "two of MNIST's digits side by side, 70,000 images of 28x56, 100 classes", _of_images(_pairs), 1568, 100, PAIR
    ),
    "fashion-mnist": DataSet(
        "pieces of clothing, 70,000 images of 28x28, 10 classes", _of_images(split_images), 784, 10, SQUARE
    ),
    "fashion-pairs": DataSet(
        "two pieces of clothing side by side, 70,000 images of 28x56, 100 classes", _of_images(_pairs), 1568, 100, PAIR
    ),
    "digits": DataSet(
        "handwritten digits, 1,797 images of 8x8, 10 classes", load_digits, 64, 10, (1, 8, 8), package="sklearn"
    ),
    "adult": DataSet("census: who earns over 50,000 dollars, 48,842 people", split_adult, 108, 2),
    "california-housing": DataSet("median house values, 20,640 districts, regression", split_california, 8),
}
"""Data sets by name."""


def load_dataset(name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Split:
    """Load a data set, the same parts every time.

    | name | x | y | train, val, test |
    |---|---|---|---|
    | mnist, fashion-mnist | 784 pixels in [0, 1] | class 0 ... 9 | 50,000, 10,000, 10,000 |
    | mnist-4-9 | 784 pixels in [0, 1] | 0 for a four, 1 for a nine | those of mnist's parts |
    | mnist-pairs, fashion-pairs | 28 x 56 pixels in [0, 1] | 10 * left + right class | 50,000, 10,000, 10,000 |
    | digits | 64 pixels in [0, 1] | class 0 ... 9 | 1,197, 300, 300 |
    | adult | 6 standardized numbers, 102 categories as 0 or 1 | 1 for over 50,000 dollars | 26,049, 6,512, 16,281 |
    | california-housing | 8 columns as they are | median value / 100,000 dollars, a float | 12,384, 4,128, 4,128 |

    Parts that are not official are cut by one fixed permutation of the examples (`data.split.fixed_order`, seed 0).
    Pairs are made of the images of one part each, every image once on the left and once on the right
    (`data.pairs.pair_images`).
    Column names, if the data set has any, are the split's `features`.

    Args:
        name: the data set.
        data_dir: a folder to look in first; by default the one that the environment variable DENDRITREE_DATA names.
        download: whether to fetch files that are not on this machine.

    >>> load_dataset("digits").train.x.shape
    torch.Size([1197, 64])
    """
    known = check_one_of("data set", name, DATASETS)
    file_set = FILE_SETS.get(known)
    files = obtain(file_set, data_dir=data_dir, download=download) if file_set else {}
    return DATASETS[known].build(*(file.content for file in files.values()))


def __getattr__(name: str) -> Any:
    renamed = {"load": "load_dataset", "normalise": "normalize"}
    if name not in renamed:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now {renamed[name]}; the next version drops the old name"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return globals()[renamed[name]]
