"""What an experiment leaves behind: one record a trial. The store keeps them, everything else reads them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["CURVES", "Row", "TrialRecord"]

CURVES = ("train_loss", "val_loss", "train_acc", "val_acc")
"""The columns of a history, one number an epoch each."""


@dataclass(frozen=True, order=True)
class Row:
    """A row of a table: one model at one dropout, whatever the trial."""

    table: str
    """Name of the spec, as `multiclass-dendritic`."""
    task: str
    """`binary`, `multiclass` or `cnn`: rows of one task are compared."""
    network: str
    """Name of the model in the registry, as `mln`, `mlp` or `perceptrons`."""
    size: int
    """Branching of a dendritic model, hidden units of an MLP, 0 for perceptrons."""
    dropout: float

    @property
    def dendritic(self) -> bool:
        """Whether the model has trees.

        >>> Row("multiclass-dendritic", "multiclass", "mln", 32, 0.4).dendritic
        True
        """
        return "mln" in self.network

    @property
    def model(self) -> str:
        """The model as tables name it.

        >>> Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0).model
        'MLP h=11'
        """
        if self.dendritic:
            return f"dendritic b={self.size}"
        return f"MLP h={self.size}" if self.size else "perceptrons"


@dataclass(frozen=True)
class TrialRecord:
    """One trained model: what it was, what happened, what it cost."""

    protocol: str
    """`paper` or `full`."""
    row: Row
    index: int
    """Number of the trial in its row, from 0; `iteration` in the authors' data."""
    seed: int
    dataset: str
    lr: float
    parameters: int
    seconds: float
    """Training time of this trial; of its stack's time, its share."""
    history: dict[str, list[float]]
    """The columns of `CURVES`; row i is epoch i."""
    test_loss: float | None = None
    """Loss and accuracy on the test set of the best epoch's weights, where the protocol has a test set."""
    test_acc: float | None = None
    model_config: dict[str, Any] = field(default_factory=dict)
    """What `create_model(row.network, **model_config)` takes to build the model; in a comparison also `fit.` and how it
    was trained."""
    weights: bytes | None = field(default=None, repr=False)
    """Best epoch's weights as safetensors; of trial 0 only."""

    @cached_property
    def best_epoch(self) -> int:
        """The epoch with the lowest validation loss; the earlier one of equals, NaN last."""
        losses = [math.inf if math.isnan(loss) else loss for loss in self.history["val_loss"]]
        return losses.index(min(losses))

    def at_best(self, curve: str) -> float:
        """A curve's value at the best epoch.

        >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
        >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
        >>> TrialRecord("paper", row, 0, 1, "mnist", 0.001, 11_395, 0.1, curves).at_best("val_acc")
        0.5
        """
        return self.history[curve][self.best_epoch]
