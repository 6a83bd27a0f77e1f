"""Built-in data sets by name: a description of each, and how a split is made from its files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from dendritree.training.examples import Examples

from .catalog import FILE_SETS
from .fetch import obtain
from .images import MEAN, SD, load_digits, split_cifar, split_four_nine, split_mnist, split_pairs
from .split import DataSplit, Scaling
from .tables.published import split_adult, split_california

PAPER = Scaling((MEAN,), (SD,))
"""MNIST's mean and standard deviation, as in the paper; used for all gray data sets in our published comparisons."""
DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt", "trousers", "pullover", "dress", "coat"),
    *("sandal", "shirt", "trainer", "bag", "ankle boot"),
)
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CONTEXT = 32
SHAKESPEARE_CHARACTERS = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""All characters of the text; a character's number is its index here."""
SQUARE, PAIR = (1, 28, 28), (1, 28, 56)


@dataclass(frozen=True)
class DataSet:
    """A description of a data set, and the function that makes a split from the content of its files.

    >>> DATASETS["mnist-pairs"].image_shape, DATASETS["mnist-pairs"].in_features, DATASETS["mnist-pairs"].classes
    ((1, 28, 56), 1568, 100)
    """

    summary: str
    build: Callable[..., DataSplit]
    """Called with the content of each file, in the order of the catalog."""
    in_features: int
    """Number of columns of x."""
    class_names: tuple[str, ...] = ()
    """Names of the classes in y, numbered from 0; empty for regression."""
    image_shape: tuple[int, int, int] | None = None
    """(channels, height, width) of the image in each row of x, pixels row by row; None if x is not an image."""
    flips: bool = False
    """Whether the mirror image of an example is another example of its class; studies then train on both."""

    @property
    def classes(self) -> int | None:
        """Number of classes; None for regression."""
        return len(self.class_names) or None

    @property
    def scaling(self) -> Scaling | None:
        """How studies scale x, if that does not depend on the training examples."""
        return PAPER if self.image_shape is not None and self.image_shape[0] == 1 else None


def split_text(content: bytes, characters: str = SHAKESPEARE_CHARACTERS, context: int = CONTEXT) -> DataSplit:
    """The numbers of `context` consecutive characters in x, and that of the next one in y; one example per character.

    The last tenth of the text is for the test, the tenth before it for validation. Rows are views of one array, so a
    million of them take no additional memory.

    >>> split = split_text(b"abcabcabcabcabcabcab", "abc", context=2)
    >>> split.train.x[:2].tolist(), split.train.y[:2].tolist(), [len(part) for part in split.parts]
    ([[0, 1], [1, 2]], [2, 0], [14, 0, 0])
    """
    table = np.full(256, -1, np.int64)
    table[np.frombuffer(characters.encode("ascii"), np.uint8)] = np.arange(len(characters))
    numbers = torch.from_numpy(table[np.frombuffer(content, np.uint8)])
    tenth = len(numbers) // 10
    ends = [0, len(numbers) - 2 * tenth, len(numbers) - tenth, len(numbers)]
    return DataSplit(*(_next_characters(numbers[start:end], context) for start, end in itertools.pairwise(ends)))


def _next_characters(numbers: torch.Tensor, context: int) -> Examples:
    if len(numbers) <= context:
        return Examples(numbers[:0].reshape(0, context), numbers[:0])
    return Examples(numbers.unfold(0, context, 1)[:-1], numbers[context:])


DATASETS: dict[str, DataSet] = {
    "mnist": DataSet("handwritten digits, 70,000 images of 28x28, 10 classes", split_mnist, 784, DIGITS, SQUARE),
    "mnist-4-9": DataSet("MNIST's fours (0) and nines (1), 13,782 images", split_four_nine, 784, ("4", "9"), SQUARE),
    "mnist-pairs": DataSet(
        "two of MNIST's digits side by side, 70,000 images of 28x56, 100 classes",
        split_pairs,
        1568,
        tuple(left + right for left in DIGITS for right in DIGITS),
        PAIR,
    ),
    "fashion-mnist": DataSet(
        "pieces of clothing, 70,000 images of 28x28, 10 classes", split_mnist, 784, CLOTHES, SQUARE
    ),
    "fashion-pairs": DataSet(
        "two pieces of clothing side by side, 70,000 images of 28x56, 100 classes",
        split_pairs,
        1568,
        tuple(f"{left}, {right}" for left in CLOTHES for right in CLOTHES),
        PAIR,
    ),
    "cifar10": DataSet(
        "photographs, 60,000 color images of 32x32, 10 classes", split_cifar, 3072, CIFAR_CLASSES, (3, 32, 32), True
    ),
    "digits": DataSet("handwritten digits, 1,797 images of 8x8, 10 classes", load_digits, 64, DIGITS, (1, 8, 8)),
    "adult": DataSet(
        "census: who earns over $50,000, 48,842 people", split_adult, 108, ("up to $50,000", "over $50,000")
    ),
    "california-housing": DataSet("median house values, 20,640 districts, regression", split_california, 8),
    "tinyshakespeare": DataSet(
        "text, 1,115,394 characters: predict the next one of 65", split_text, CONTEXT, tuple(SHAKESPEARE_CHARACTERS)
    ),
}
"""Data sets by name."""


def load_builtin(name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> DataSplit:
    """Load a data set of `DATASETS` from this machine, or download it.

    >>> load_builtin("digits").classes
    ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')
    """
    data_set, file_set = DATASETS[name], FILE_SETS.get(name)  # digits come with scikit-learn
    contents = obtain(file_set, data_dir=data_dir, download=download) if file_set else {}
    return replace(
        data_set.build(*contents.values()),
        image_shape=data_set.image_shape,
        classes=data_set.class_names,
        scaling=data_set.scaling,
        name=name,
    )
