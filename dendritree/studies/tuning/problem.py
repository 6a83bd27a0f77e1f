"""What is to be learned: the loss, the figure that counts, and the sizes, read off a split."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import torch

from ...data import Split
from ...errors import OptionError

__all__ = ["Problem"]

BATCH_SIZE = 256
FEWEST_EPOCHS, MOST_EPOCHS = 5, 400
DIGEST_ROWS = 1000


@dataclass(frozen=True)
class Problem:
    """A split's task."""

    in_features: int
    classes: int | None
    """None for regression."""

    @classmethod
    def of(cls, split: Split) -> Problem:
        """Classes where y is of whole numbers from 0, a quantity where y is a float.

        >>> from dendritree.data import load_dataset
        >>> Problem.of(load_dataset("digits"))
        Problem(in_features=64, classes=10)
        """
        x, y = split.train.x, split.train.y
        if x.dim() != 2 or not x.is_floating_point() or not x.shape[1]:
            raise OptionError(f"tune takes rows of floats: got x {tuple(x.shape)} of {x.dtype}")
        if not (len(split.train) and len(split.val) and len(split.test)):
            sizes = [len(part) for part in (split.train, split.val, split.test)]
            raise OptionError(f"tune needs training, validation and test examples: got {sizes}")
        if y.is_floating_point():
            if y.reshape(len(y), -1).shape[1] != 1:
                raise OptionError(f"a quantity must be one number for each example: got y {tuple(y.shape)}")
            return cls(x.shape[1], None)
        low, high = int(y.min()), int(max(part.y.max() for part in (split.train, split.val, split.test)))
        if y.dim() != 1 or low < 0 or high < 1:
            raise OptionError(f"classes must be numbered from 0, two or more: got y {tuple(y.shape)}, {low} to {high}")
        return cls(x.shape[1], high + 1)

    @property
    def out_features(self) -> int:
        """One for each class; one for a yes-or-no question or a quantity."""
        return self.classes if self.classes is not None and self.classes > 2 else 1

    @property
    def loss(self) -> str:
        """The loss of `dendritree.fit`."""
        if self.classes is None:
            return "squared-error"
        return "cross-entropy" if self.classes > 2 else "binary-logits"

    @property
    def metric(self) -> str:
        """What counts: `accuracy`, or `rmse`, of which less is better."""
        return "rmse" if self.classes is None else "accuracy"

    @property
    def direction(self) -> str:
        """Optuna's word for it."""
        return "minimize" if self.classes is None else "maximize"

    def score(self, loss: float, accuracy: float) -> float:
        """The figure that counts, of a mean loss and an accuracy.

        >>> Problem(8, None).score(0.25, math.nan)
        0.5
        """
        return math.sqrt(loss) if self.classes is None else (math.nan if math.isnan(loss) else accuracy)

    @staticmethod
    def epochs(examples: int, steps: int) -> int:
        """Passes over the examples that make about `steps` steps; never very few, never very many.

        >>> Problem.epochs(50_000, 1000)
        6
        """
        return min(max(math.ceil(steps / math.ceil(examples / BATCH_SIZE)), FEWEST_EPOCHS), MOST_EPOCHS)


def digest(split: Split) -> str:
    """Tells other data: sizes, all of y, and some rows of x."""
    found = hashlib.sha256()
    for part in (split.train, split.val, split.test):
        rows = part.x[:: max(1, len(part) // DIGEST_ROWS)]
        for tensor in (torch.tensor(part.x.shape), rows, part.y):
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]
