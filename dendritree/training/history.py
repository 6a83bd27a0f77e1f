"""The metrics of a run per epoch, and what a callback sees of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int
from .config import FitConfig


@dataclass(frozen=True)
class Epoch:
    """The metrics of one epoch. Training metrics are averages over its steps, in training mode."""

    epoch: int
    train_loss: float
    val_loss: float
    train_acc: float
    """Training accuracy; NaN for regression."""
    val_acc: float
    seconds: float

    def better_than(self, other: Epoch) -> bool:
        """Whether its validation loss is lower; NaN counts as the highest."""
        return self.val_loss < other.val_loss or (math.isnan(other.val_loss) and not math.isnan(self.val_loss))


@dataclass
class History:
    """All epochs of a run, and the weights of the best one by validation loss."""

    config: FitConfig
    epochs: list[Epoch] = field(default_factory=list)
    best_state: dict[str, Tensor] = field(default_factory=dict, repr=False)
    interrupted: bool = False
    """Whether Ctrl-C stopped the run; the history holds everything before that."""

    @property
    def best(self) -> Epoch:
        """The epoch with the lowest validation loss; the earliest of equals, with NaN last."""
        if not self.epochs:
            raise OptionError("a history must have at least one completed epoch to have a best one: got none")
        return min(self.epochs, key=lambda epoch: (math.isnan(epoch.val_loss), epoch.val_loss))

    def columns(self) -> dict[str, list[float]]:
        """The epochs as columns, ready for a data frame."""
        return {name: [getattr(e, name) for e in self.epochs] for name in Epoch.__dataclass_fields__}

    def as_dict(self) -> dict[str, object]:
        """Config and epochs as plain values, ready for JSON."""
        return {"config": asdict(self.config), "epochs": [asdict(e) for e in self.epochs]}


@dataclass
class Run:
    """What a callback sees after each epoch. Setting `stop` ends the run there."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    history: History
    stop: bool = False


Callback = Callable[[Run], None]


class EarlyStopping:
    """A callback that stops a run whose validation loss has not decreased for some epochs.

    With `FitConfig.restore_best` the model ends with its best weights.

    Args:
        patience: epochs to wait for a lower validation loss.
    """

    def __init__(self, patience: int = 10) -> None:
        self.patience = check_int("patience", patience)

    def __call__(self, run: Run) -> None:
        """Check the history so far; the callback has no state of its own, so it can be reused."""
        history = run.history
        run.stop = run.stop or history.epochs[-1].epoch - history.best.epoch >= self.patience
