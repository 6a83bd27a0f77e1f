"""A task: what is to be learned, how well it was, and the examples as every model gets them."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...data import DATASETS, Examples, Split, first_examples, load_dataset, normalize
from ...errors import OptionError, check_int, check_one_of
from ...wiring.images import check_image_shape

BATCH_SIZE = 256
FEWEST_EPOCHS, MOST_EPOCHS = 5, 400
CLIP = 5.0
"""Standardized columns of a table are clipped here: a few districts of California have rooms beyond reason."""
DIGEST_ROWS = 1000


@dataclass(frozen=True)
class Task:
    """What is to be learned: sizes and kind of the answer."""

    in_features: int
    classes: int | None
    """Number of classes; None for a quantity."""
    image_shape: tuple[int, int, int] | None = None
    """Channels, height and width of an input that is an image; None for a table."""
    dataset: str = ""
    """Name of the data set, of which `load` gives the examples; empty for a split of the user's."""
    examples: int | None = None
    """Number of training examples, the first ones of the data set; None for all."""

    @classmethod
    def parse(cls, text: str) -> Task:
        """The task of a data set by name, as `mnist`, or `mnist:128` for its first 128 training examples.

        >>> Task.parse("mnist:128").examples
        128
        """
        dataset, colon, examples = text.partition(":")
        if colon and not (examples.isdecimal() and examples.isascii() and len(examples) < 19):
            raise OptionError(f"a task must be a data set, or one and a number of examples, as mnist:128: got {text!r}")
        known = DATASETS[check_one_of("data set", dataset, DATASETS)]
        count = check_int("examples", int(examples)) if colon else None
        return cls(known.in_features, known.classes, known.image_shape, dataset, count)

    @classmethod
    def of(cls, split: Split, image_shape: Sequence[int] | None = None) -> Task:
        """The task of a split: classes where y holds whole numbers from 0, a quantity where y is a float.

        >>> Task.of(load_dataset("digits"))
        Task(in_features=64, classes=10, image_shape=None, dataset='', examples=None)
        """
        x, y = split.train.x, split.train.y
        parts = (split.train, split.val, split.test)
        if x.dim() != 2 or not x.is_floating_point() or not x.shape[1]:
            raise OptionError(f"examples must be rows of floats: got x {tuple(x.shape)} of {x.dtype}")
        if not all(map(len, parts)):
            raise OptionError(f"there must be training, validation and test examples: got {[*map(len, parts)]}")
        shape = check_image_shape(None if image_shape is None else tuple(image_shape))
        if shape is not None and math.prod(shape) != x.shape[1]:
            raise OptionError(f"image_shape must have {x.shape[1]} pixels in all: got {shape}")
        if y.is_floating_point():
            if y.reshape(len(y), -1).shape[1] != 1:
                raise OptionError(f"a quantity must be one number for each example: got y {tuple(y.shape)}")
            return cls(x.shape[1], None, shape)
        low, high = int(y.min()), int(max(part.y.max() for part in parts))
        if y.dim() != 1 or low < 0 or high < 1:
            raise OptionError(f"classes must be numbered from 0, two or more: got y {tuple(y.shape)}, {low} to {high}")
        return cls(x.shape[1], high + 1, shape)

    @property
    def name(self) -> str:
        """The data set, and how many of its examples.

        >>> Task.parse("mnist").name, Task.parse("mnist:128").name
        ('mnist', 'mnist:128')
        """
        return self.dataset if self.examples is None else f"{self.dataset}:{self.examples}"

    @property
    def title(self) -> str:
        """The task as a heading.

        >>> Task.parse("mnist:1000").title
        'mnist, 1,000 training examples'
        """
        return self.dataset if self.examples is None else f"{self.dataset}, {self.examples:,} training examples"

    @property
    def out_features(self) -> int:
        """Outputs of a model: one per class; one for a yes-or-no question or a quantity."""
        return self.classes if self.classes is not None and self.classes > 2 else 1

    @property
    def loss(self) -> str:
        """The loss of `dendritree.fit`."""
        if self.classes is None:
            return "squared-error"
        return "cross-entropy" if self.classes > 2 else "binary-logits"

    @property
    def metric(self) -> str:
        """What is compared: `accuracy`, or `rmse` for a quantity, of which less is better."""
        return "accuracy" if self.classes is not None else "rmse"

    def score(self, loss: float, accuracy: float) -> float:
        """The metric of a model with this mean loss and accuracy; NaN for one that diverged.

        >>> Task(8, None).score(0.25, math.nan), Task(8, 2).score(math.nan, 0.5)
        (0.5, nan)
        """
        if self.classes is None:
            return math.sqrt(loss)
        return math.nan if math.isnan(loss) else accuracy

    def goodness(self, score: float) -> float:
        """A score so that more is better whatever the metric; NaN is worst."""
        if math.isnan(score):
            return -math.inf
        return score if self.metric == "accuracy" else -score

    @property
    def input_range(self) -> tuple[float, float]:
        """Where the inputs of `load` lie: from the darkest to the lightest pixel, most values of a table.

        >>> Task.parse("mnist").input_range
        (-0.424, 2.821)
        """
        if self.image_shape is None:
            return -2.0, 2.0
        low, high = normalize(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
        return round(low, 3), round(high, 3)

    def load(self, data_dir: str | None = None) -> Split:
        """The examples: pixels with the paper's mean and deviation, columns of a table with their own."""
        return _load(self, data_dir)


def epochs_for(examples: int, steps: int) -> int:
    """Passes over so many examples that make about `steps` steps; never very few, never very many.

    >>> epochs_for(50_000, steps=4000), epochs_for(128, steps=4000)
    (21, 400)
    """
    return min(max(math.ceil(steps / math.ceil(examples / BATCH_SIZE)), FEWEST_EPOCHS), MOST_EPOCHS)


@functools.lru_cache(maxsize=1)
def _load(task: Task, data_dir: str | None) -> Split:
    split = load_dataset(task.dataset, data_dir=data_dir)
    if task.examples is not None:
        split = first_examples(split, task.examples)
    scale: Callable[[Tensor], Tensor] = normalize
    if task.image_shape is None:
        mean, sd = split.train.x.mean(0), split.train.x.std(0).clamp_min(1e-6)

        def scale(x: Tensor) -> Tensor:
            return torch.clamp((x - mean) / sd, -CLIP, CLIP)

    return Split(*(Examples(scale(part.x), part.y) for part in (split.train, split.val, split.test)))


def digest(split: Split) -> str:
    """Differs for other data: sizes, all of y, and some rows of x."""
    found = hashlib.sha256()
    for part in (split.train, split.val, split.test):
        rows = part.x[:: max(1, len(part) // DIGEST_ROWS)]
        for tensor in (torch.tensor(part.x.shape), rows, part.y):
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]
