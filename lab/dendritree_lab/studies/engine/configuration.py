"""A configuration is a model and its training settings; every study that searches trains it in the same way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dendritree.errors import OptionError, check_number
from dendritree.models import create_model
from dendritree.training import Callback, FitConfig, History, fit
from dendritree.training.examples import Examples
from dendritree.training.rewiring import Rewiring

from ...data.split import DataSplit
from .task import Task, batch_size_for


@dataclass(frozen=True)
class Configuration:
    """A model and its training settings: drawn by a search, then trained again with fresh seeds."""

    network: str
    """Name in the model registry."""
    arguments: Mapping[str, Any]
    """Arguments of `create_model`."""
    lr: float
    weight_decay: float = 0.0
    """Weight decay of AdamW."""
    rewired: float = 0.0
    """Fraction of a neuron's synapses that are rewired after the first epoch; 0 for fixed wiring."""

    def __post_init__(self) -> None:
        if not isinstance(self.network, str) or not isinstance(self.arguments, Mapping):
            raise OptionError(f"a configuration must have a network and its arguments: got {self!r:.160}")
        for name in ("lr", "weight_decay", "rewired"):
            check_number(name, getattr(self, name), positive=name == "lr")

    @property
    def dropout(self) -> float:
        """The dropout among the arguments."""
        return float(self.arguments.get("dropout", 0.0))

    @property
    def code(self) -> str:
        """The line of code that builds the model.

        >>> from dendritree.wiring import Local
        >>> Configuration("dendritic-network", {"wiring": Local(window=5), "output": "logits"}, 0.01).code
        'create_model("dendritic-network", wiring=Local(window=5))'
        """
        shown = [f"{name}={_code(value)}" for name, value in self.arguments.items() if (name, value) not in UNSAID]
        return ", ".join([f'create_model("{self.network}"', *shown]) + ")"


UNSAID = [("output", "logits"), ("dropout", 0.0), ("norm", None)]
"""Arguments that are defaults of every model that a search may select."""


def _code(value: Any) -> str:
    """A value as Python code; for a wiring, only the arguments that differ from their defaults."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if getattr(value, field.name) != field.default]
        inside = ", ".join(f"{field.name}={_code(getattr(value, field.name))}" for field in fields)
        return f"{type(value).__name__}({inside})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


ONE_CYCLE: dict[str, Any] = {"optimizer": "adamw", "schedule": "one-cycle"}
"""How a study that searches trains its models: AdamW with a one-cycle learning rate schedule."""


def fit_through(model: nn.Module, split: DataSplit, config: FitConfig, callbacks: Sequence[Callback] = ()) -> History:
    """Train a model to the end. Ctrl-C raises: a study does not keep incomplete trials."""
    history = fit(model, split, config, callbacks=callbacks)
    if history.interrupted:
        raise KeyboardInterrupt
    return history


def train(
    configuration: Configuration,
    task: Task,
    split: DataSplit,
    *,
    epochs: int,
    seed: int,
    callbacks: Sequence[Callback] = (),
) -> tuple[nn.Module, History]:
    """Train a configuration, with all randomness derived from the seed. Ctrl-C raises.

    Regression targets are standardized for training, and callbacks see the losses of those; the returned model and its
    history are in the units of the data.
    """
    torch.manual_seed(seed)
    model = create_model(configuration.network, **configuration.arguments)
    sizes: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size_for(len(split.train)), "flips": task.flips}
    config = FitConfig(
        task.loss, lr=configuration.lr, weight_decay=configuration.weight_decay, seed=seed, **sizes, **ONE_CYCLE
    )
    where = "window" if hasattr(configuration.arguments.get("wiring"), "window") else "anywhere"
    moves = [Rewiring(configuration.rewired, where=where, seed=seed)] if configuration.rewired else []
    if task.metric != "rmse":
        history = fit_through(model, split, config, [*moves, *callbacks])
        return model.eval(), history
    y = split.train.y.double()
    mean, unit = float(y.mean()), float(y.std(correction=0)) or 1.0
    train_part, val_part = (_standardized(part, mean, unit) for part in (split.train, split.val))
    scaled = dataclasses.replace(split, train=train_part, val=val_part)
    history = fit_through(model, scaled, config, [*moves, *callbacks])
    _restore_units(model, history, mean, unit)
    return model.eval(), history


def _standardized(examples: Examples, mean: float, unit: float) -> Examples:
    return dataclasses.replace(examples, y=((examples.y.double() - mean) / unit).to(examples.y.dtype))


@torch.no_grad()
def _restore_units(model: nn.Module, history: History, mean: float, unit: float) -> None:
    """Undo the standardization of the target in the linear read-out that all networks here have, and in the losses."""
    readout: Any = model.chain()[-1]  # type: ignore[operator]
    readout.weight.mul_(unit)
    readout.bias.mul_(unit).add_(mean)
    square = unit**2
    history.epochs = [
        dataclasses.replace(epoch, train_loss=square * epoch.train_loss, val_loss=square * epoch.val_loss)
        for epoch in history.epochs
    ]
    history.best_state = {}  # in the old units
