"""A trial: the record of one trained model of any study."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

import safetensors.torch
from torch import Tensor, nn

from dendritree.models.sizing import parameters_of
from dendritree.training import History

CURVES = ("train_loss", "val_loss", "train_acc", "val_acc")
"""The curves of a trial, one number per epoch each."""
SEARCH, TEST, MORE, FINAL = "search", "test", "more", "final"
"""Phases of a search: a candidate; the best configuration with a fresh seed, evaluated on the test set; and in `tune`,
further candidates, and a finalist, whose weights are kept."""

Value = str | int | float


@dataclass(frozen=True)
class Trial:
    """One trained model: its configuration, its curves and scores, and its cost."""

    study: str
    """The study it belongs to, such as `paper` or `fair`."""
    key: Mapping[str, Value]
    """Identifies it in its study: named values such as `{"task": "mnist", "budget": 9000, "family": "tree"}`."""
    seed: int
    config: Mapping[str, Any]
    """Everything that determined its result: how to build and train the model again."""
    parameters: int
    seconds: float
    """Training time; its share if several models were trained together."""
    curves: Mapping[str, Sequence[float]]
    """The `CURVES`; item i is epoch i."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Values measured once, after training, such as `test_acc`."""
    weights: bytes | None = field(default=None, repr=False)
    """Weights of the best epoch as safetensors, if the model is kept."""

    @classmethod
    def of_history(
        cls,
        study: str,
        key: Mapping[str, Value],
        seed: int,
        config: Mapping[str, Any],
        model: nn.Module,
        history: History,
        seconds: float,
        scores: Mapping[str, float],
        weights: bytes | None = None,
    ) -> Self:
        """The trial of a model that `fit` has trained."""
        columns = history.columns()
        curves = {name: columns[name] for name in CURVES}
        return cls(study, key, seed, config, parameters_of(model), seconds, curves, scores, weights)

    @property
    def best_epoch(self) -> int:
        """The epoch with the lowest validation loss; the earliest of equals, with NaN last.

        >>> Trial("paper", {}, 1, {}, 11_395, 0.1, {"val_loss": [math.nan, 2.0, 1.0, 1.0]}).best_epoch
        2
        """
        losses = [math.inf if math.isnan(loss) else loss for loss in self.curves["val_loss"]]
        return losses.index(min(losses))

    def at_best(self, curve: str) -> float:
        """A curve's value at the best epoch.

        >>> Trial("paper", {}, 1, {}, 11_395, 0.1, {"val_loss": [2.0, 3.0], "val_acc": [0.5, 0.6]}).at_best("val_acc")
        0.5
        """
        return self.curves[curve][self.best_epoch]


def state_bytes(model: nn.Module, state: Mapping[str, Tensor] = MappingProxyType({})) -> bytes:
    """The model's complete state, after loading `state` into it, as the bytes of a safetensors file."""
    model.load_state_dict(model.state_dict() | dict(state))
    return safetensors.torch.save({name: value.contiguous() for name, value in model.state_dict().items()})


def key_text(key: Mapping[str, Value]) -> str:
    """A key as a string: equal keys give equal strings, also for -0.0 and 0.0.

    >>> key_text({"budget": 9000, "dropout": -0.0})
    '{"budget": 9000, "dropout": 0.0}'
    """
    plain = {name: value + 0.0 if isinstance(value, float) else value for name, value in key.items()}
    return json.dumps(plain, allow_nan=False)


def seed_of(*parts: object) -> int:
    """A seed below 2^63 that depends only on the parts.

    >>> seed_of("weights", "mln", 32, 0) == seed_of("weights", "mln", 32, 0) != seed_of("weights", "mln", 32, 1)
    True
    """
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
