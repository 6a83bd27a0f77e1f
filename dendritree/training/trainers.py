"""`Rewiring` in the training loops of others: Lightning, and the Trainer of transformers.

Neither package is needed here: their classes are extended where a callback is made.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from ..errors import MissingExtraError, OptionError

AfterEpoch: TypeAlias = Callable[[nn.Module, Sequence[torch.optim.Optimizer], int, int], None]
"""`Rewiring.after_epoch`."""


def lightning_callback(after_epoch: AfterEpoch) -> Any:
    """A callback of Lightning, of the package in use: `lightning.pytorch` or `pytorch_lightning`."""
    base: Any = _package("lightning.pytorch", "pytorch_lightning").Callback

    class LightningRewiring(base):  # type: ignore[misc]
        """Moves synapses while Lightning trains."""

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            """Move some, with the epochs that the Trainer was given."""
            epochs = trainer.max_epochs
            if epochs is None or epochs < 1:
                raise OptionError(f"max_epochs of the Trainer must be a number of epochs for Rewiring: got {epochs}")
            after_epoch(pl_module, trainer.optimizers, trainer.current_epoch, epochs)

    return LightningRewiring()


def transformers_callback(after_epoch: AfterEpoch) -> Any:
    """A callback of the Trainer of transformers."""
    base: Any = _package("transformers").TrainerCallback

    class TransformersRewiring(base):  # type: ignore[misc]
        """Moves synapses while the Trainer trains."""

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Move some, with the epochs that the Trainer was given."""
            optimizer = kwargs["optimizer"]
            own = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
            after_epoch(kwargs["model"], [own], round(state.epoch) - 1, round(state.num_train_epochs))

    return TransformersRewiring()


def _package(*names: str) -> Any:
    """The first of some packages that is installed, one that is already imported before the others."""
    for name in sorted(names, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    package = names[0].partition(".")[0]
    raise MissingExtraError(f"{package} is needed for its callback and cannot be imported: pip install {package}")
