"""What models are compared on: a data set, or its first few training examples, as every model gets it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch

from ...data import DATASETS, Examples, Split, first_examples, load_dataset, normalize
from ...errors import OptionError, check_int, check_one_of

__all__ = ["BATCH_SIZE", "TASKS", "Task"]

BATCH_SIZE = 256
FEWEST_EPOCHS, MOST_EPOCHS = 5, 400
CLIP = 5.0
"""Standardised columns of a table end here: a few districts of California have rooms beyond reason."""


@dataclass(frozen=True)
class Task:
    """A data set to learn, with all its training examples or a few."""

    dataset: str
    examples: int | None = None
    """Number of training examples; None for all."""

    def __post_init__(self) -> None:
        check_one_of("data set", self.dataset, TASKS)
        if self.examples is not None:
            check_int("examples", self.examples)

    @classmethod
    def parse(cls, text: str) -> Task:
        """A task from its name.

        >>> Task.parse("mnist:128")
        Task(dataset='mnist', examples=128)
        """
        dataset, colon, examples = text.partition(":")
        if colon and not (examples.isdecimal() and examples.isascii() and len(examples) < 19):
            raise OptionError(f"a task must be a data set, or one and a number of examples, as mnist:128: got {text!r}")
        return cls(dataset, int(examples) if colon else None)

    @property
    def name(self) -> str:
        """The data set, and how many of its examples.

        >>> Task("mnist").name, Task("mnist", 128).name
        ('mnist', 'mnist:128')
        """
        return self.dataset if self.examples is None else f"{self.dataset}:{self.examples}"

    @property
    def classes(self) -> int | None:
        """Number of classes; None for regression."""
        return DATASETS[self.dataset].classes

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width; None for a table."""
        return DATASETS[self.dataset].image_shape

    @property
    def out_features(self) -> int:
        """Outputs of a model: one for each class, one for a yes-or-no question or a number."""
        return self.classes if self.classes is not None and self.classes > 2 else 1

    @property
    def loss(self) -> str:
        """The loss of `dendritree.fit`."""
        if self.classes is None:
            return "squared-error"
        return "cross-entropy" if self.classes > 2 else "binary-logits"

    @property
    def metric(self) -> str:
        """What is compared: `accuracy`, or `rmse` for regression, of which less is better."""
        return "accuracy" if self.classes is not None else "rmse"

    def score(self, loss: float, accuracy: float) -> float:
        """The metric of a model with this mean loss and accuracy.

        >>> Task("california-housing").score(0.25, float("nan"))
        0.5
        """
        return accuracy if self.classes is not None else math.sqrt(loss)

    def epochs(self, training_examples: int, steps: int) -> int:
        """Passes over the training examples that make about `steps` steps; never very few, never very many.

        >>> Task("mnist").epochs(50_000, steps=4000), Task("mnist", 128).epochs(128, steps=4000)
        (21, 400)
        """
        per_epoch = math.ceil(training_examples / BATCH_SIZE)
        return min(max(math.ceil(steps / per_epoch), FEWEST_EPOCHS), MOST_EPOCHS)

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


TASKS = {
    "mnist": "4k 9k 18k 36k",
    "fashion-mnist": "4k 9k 18k 36k",
    "mnist-pairs": "9k 18k 36k",
    "fashion-pairs": "9k 18k 36k",
    "digits": "1k 2k 4k",
    "adult": "1k 2k 4k 8k",
    "california-housing": "1k 2k 4k 8k",
}
"""Data sets that are compared on, and the parameter budgets of each by default."""


@functools.lru_cache(maxsize=1)
def _load(task: Task, data_dir: str | None) -> Split:
    split = load_dataset(task.dataset, data_dir=data_dir)
    if task.examples is not None:
        split = first_examples(split, task.examples)
    if task.image_shape is not None:
        return Split(*(Examples(normalize(part.x), part.y) for part in (split.train, split.val, split.test)))
    mean, sd = split.train.x.mean(0), split.train.x.std(0).clamp_min(1e-6)
    return Split(
        *(
            Examples(torch.clamp((part.x - mean) / sd, -CLIP, CLIP), part.y)
            for part in (split.train, split.val, split.test)
        )
    )
