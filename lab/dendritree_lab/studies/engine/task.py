"""A task: what is to be learned, how it is scored, and the examples as all models receive them."""

from __future__ import annotations

import functools
import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from dendritree.errors import OptionError, check_int, check_one_of
from dendritree.training.examples import no_leftover
from dendritree.wiring.image_orders import check_image_shape

from ...data import DATASETS, first_examples, load_dataset
from ...data.inputs import Inputs
from ...data.split import CLIP, DataSplit, read_split, write_split

__all__ = ["BATCH_SIZES", "CLIP", "FEWEST_EPOCHS", "MOST_EPOCHS", "Task", "batch_size_for", "digest", "epochs_for"]

BATCH_SIZES = 16, 256
"""The smallest and the largest batch: an eighth of the examples, as a power of 2, within these limits. On 200 examples,
batches of 16 instead of 256 gave 4 points more accuracy with as many steps, which take less time."""
FEWEST_EPOCHS, MOST_EPOCHS = 5, 400
MOST_SCALED = (-2.0, 2.0)
"""The range that most scaled inputs are in."""


@dataclass(frozen=True)
class Task:
    """What is to be learned: sizes, and the kind of output."""

    in_features: int
    classes: int | None
    """Number of classes; None for regression."""
    image_shape: tuple[int, int, int] | None = None
    """Channels, height and width of an input that is an image; None for a table."""
    dataset: str = ""
    """Name of the data set; empty for a split that the user passed."""
    examples: int | None = None
    """Number of training examples, the first ones of the data set; None for all."""
    digest: str = field(default="", repr=False)
    """Digest of the user's own data, so that other data is another task; empty for a built-in data set."""
    trained: int = field(default=0, compare=False, repr=False)
    """Number of training examples of the user's own data."""
    bounds: tuple[float, float] | None = field(default=None, compare=False, repr=False)
    """The smallest and largest input of the user's own images, scaled."""
    held: DataSplit | None = field(default=None, compare=False, repr=False)
    """The user's own data, not scaled."""
    file: str = field(default="", compare=False, repr=False)
    """Path of a copy of it, for other processes."""
    origin: Inputs = field(default=Inputs(), compare=False, repr=False)
    """How the user specified the data."""

    @classmethod
    def parse(cls, text: str) -> Task:
        """The task of a built-in data set, such as `mnist`, or `mnist:128` for its first 128 training examples.

        >>> Task.parse("mnist:128").examples
        128
        """
        dataset, count = _name_and_count(text)
        known = DATASETS[check_one_of("data set", dataset, DATASETS)]
        return cls(known.in_features, known.classes, known.image_shape, dataset, count, origin=Inputs(dataset))

    @classmethod
    def named(cls, data: Any, *, target: Any = None, image: Sequence[int] | None = None) -> Task:
        """The task of anything that `load_dataset` takes; names and paths may end in `:128` for 128 training examples.

        A built-in data set is loaded when it is needed, anything else immediately. A task is returned as it is.

        >>> import numpy
        >>> Task.named((numpy.random.rand(20, 6, 6), numpy.arange(20) % 2))
        Task(in_features=36, classes=2, image_shape=(1, 6, 6), dataset='the data', examples=None)
        """
        count = None
        if isinstance(data, Task):
            return data
        if isinstance(data, str):
            if _name_and_count(data)[0] in DATASETS:
                return cls.parse(data)
            if not Path(data).exists():
                data, count = _name_and_count(data)
        split = load_dataset(data, target=target, image=image)
        if count is not None:
            split = first_examples(split, count)
        task = cls.of(split)
        scaled = None if task.image_shape is None else split.scaled().train.x
        return replace(
            task,
            dataset=split.name or "the data",
            examples=count,
            digest=digest(split),
            trained=len(split.train),
            bounds=None if scaled is None else (round(float(scaled.min()), 3), round(float(scaled.max()), 3)),
            held=split,
            origin=Inputs(
                str(Path(data).expanduser().resolve()) if isinstance(data, str | os.PathLike) else None,
                None if target is None else str(target),
                None if image is None else (image[0], image[1], image[2]),
            ),
        )

    @classmethod
    def of(cls, split: DataSplit, image_shape: Sequence[int] | None = None) -> Task:
        """The task of a split: classification if y holds integers from 0, regression if y is a float.

        >>> Task.of(load_dataset("digits"))
        Task(in_features=64, classes=10, image_shape=(1, 8, 8), dataset='', examples=None)
        """
        x, y = split.train.x, split.train.y
        parts = (split.train, split.val, split.test)
        if x.dim() != 2 or not x.is_floating_point() or not x.shape[1]:
            raise OptionError(f"examples must be rows of floats: got x {tuple(x.shape)} of {x.dtype}")
        if not all(map(len, parts)):
            raise OptionError(f"there must be training, validation and test examples: got {[*map(len, parts)]}")
        shape = check_image_shape(split.image_shape if image_shape is None else tuple(image_shape))
        if shape is not None and math.prod(shape) != x.shape[1]:
            raise OptionError(f"image_shape must have {x.shape[1]} pixels in all: got {shape}")
        if y.is_floating_point():
            if y.reshape(len(y), -1).shape[1] != 1:
                raise OptionError(f"a quantity must be one number per example: got y {tuple(y.shape)}")
            return cls(x.shape[1], None, shape)
        low, high = int(y.min()), int(max(part.y.max() for part in parts))
        if y.dim() != 1 or low < 0 or high < 1:
            raise OptionError(f"classes must be numbered from 0, two or more: got y {tuple(y.shape)}, {low} to {high}")
        return cls(x.shape[1], max(high + 1, len(split.classes)), shape)

    # ---------------------------------------------------------------------------------------------- the user's own data

    def kept_in(self, folder: Path) -> Task:
        """The same task with a copy of its data in a folder, for other processes; a built-in task is unchanged."""
        if self.held is None:
            return self
        file = folder / f"{self.digest}.npz"
        if not file.exists():
            write_split(self.held, file)
        return replace(self, held=None, file=str(Path(file).resolve()))

    def as_fact(self) -> dict[str, Any]:
        """What a run stores about the user's own data, so that a report does not need the data; JSON values."""
        shape = None if self.image_shape is None else list(self.image_shape)
        sizes = {"in_features": self.in_features, "classes": self.classes, "image_shape": shape}
        return {**sizes, "digest": self.digest, "trained": self.trained}

    @classmethod
    def from_fact(cls, name: str, fact: Any) -> Task:
        """The task of a name in a run, given what was stored about its data; a built-in task if nothing was."""
        if fact is None:
            return cls.parse(name)
        dataset, count = _name_and_count(name)
        if count != fact["trained"]:
            dataset, count = name, None
        shape = None if fact["image_shape"] is None else tuple(fact["image_shape"])
        return cls(fact["in_features"], fact["classes"], shape, dataset, count, fact["digest"], fact["trained"])

    @property
    def name(self) -> str:
        """The name of the data set, and the number of examples if it is limited.

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
        """Outputs of a model: one per class; one for binary classification or regression."""
        return self.classes if self.classes is not None and self.classes > 2 else 1

    @property
    def loss(self) -> str:
        """The name of the loss in `dendritree.fit`."""
        if self.classes is None:
            return "squared-error"
        return "cross-entropy" if self.classes > 2 else "binary-logits"

    @property
    def metric(self) -> str:
        """What is compared: `accuracy`, or `rmse` for regression, where lower is better."""
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
        """A score signed so that higher is better whatever the metric; NaN is worst."""
        if math.isnan(score):
            return -math.inf
        return score if self.metric == "accuracy" else -score

    @property
    def input_range(self) -> tuple[float, float]:
        """The range of the inputs of `load`: from the darkest to the lightest pixel, or most values of a table.

        >>> Task.parse("mnist").input_range
        (-0.424, 2.821)
        """
        if self.bounds is not None:
            return self.bounds
        fixed = DATASETS[self.dataset].scaling if self.dataset in DATASETS and not self.digest else None
        return MOST_SCALED if fixed is None else fixed.bounds(0.0, 1.0)

    @property
    def flips(self) -> bool:
        """Whether models are trained on mirror images too.

        >>> Task.parse("mnist").flips, Task.parse("cifar10").flips
        (False, True)
        """
        return self.dataset in DATASETS and not self.digest and DATASETS[self.dataset].flips

    def load(self, data_dir: str | None = None) -> DataSplit:
        """The examples, scaled: gray pixels of built-in data as in the paper, all else by the training part."""
        return self.held.scaled() if self.held is not None else _load(self, data_dir)


def _name_and_count(text: str) -> tuple[str, int | None]:
    """`mnist:128` -> ("mnist", 128); `mnist` -> ("mnist", None)."""
    name, colon, count = text.rpartition(":")
    return (name, check_int("examples", int(count))) if colon and count.isdecimal() else (text, None)


def batch_size_for(examples: int) -> int:
    """Examples per training step; no batch has a single one, from which batch normalization cannot learn.

    >>> [batch_size_for(examples) for examples in (100, 1000, 1600, 50_000)]
    [16, 64, 128, 256]
    """
    least, most = BATCH_SIZES
    return no_leftover(max(examples, 2), min(max(1 << (max(examples, 8) // 8).bit_length() - 1, least), most))


def epochs_for(examples: int, steps: int) -> int:
    """Epochs over a number of examples that make about `steps` steps, within limits.

    >>> epochs_for(50_000, steps=4000), epochs_for(128, steps=4000)
    (21, 400)
    """
    per_epoch = math.ceil(examples / batch_size_for(examples))
    return min(max(math.ceil(steps / per_epoch), FEWEST_EPOCHS), MOST_EPOCHS)


@functools.lru_cache(maxsize=1)
def _load(task: Task, data_dir: str | None) -> DataSplit:
    if task.digest:
        return read_split(task.file).scaled()
    split = load_dataset(task.dataset, data_dir=data_dir)
    if task.examples is not None:
        split = first_examples(split, task.examples)
    Task.of(split)  # raises for text, which has no rows of floats
    return split.scaled()


def digest(split: DataSplit) -> str:
    """A digest of the data: every x and y, shapes and names."""
    content = hashlib.sha256(repr((split.image_shape, split.classes, split.features)).encode())
    for part in split.parts:
        for tensor in (torch.tensor(part.x.shape), part.x, part.y):
            content.update(tensor.detach().cpu().contiguous().numpy().data)
    return content.hexdigest()[:16]
