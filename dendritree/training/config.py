"""How to train: one frozen config, and the optimizers and schedules that it names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import OptionError, check_float, check_int, check_one_of
from .losses import LOSSES

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
"""Optimizers by name."""

SCHEDULES = ("constant", "one-cycle", "cosine")
"""Learning rate over time: constant; rising to `lr` and falling to 0; or falling from `lr` to 0."""


@dataclass(frozen=True)
class FitConfig:
    """How to train. Every field is checked on construction."""

    loss: str = "cross-entropy"
    """One of `LOSSES`."""
    epochs: int = 20
    """Passes over the training examples."""
    batch_size: int | None = 128
    """Examples per step; None takes all of them in every step."""
    optimizer: str = "adam"
    """One of `OPTIMIZERS`."""
    lr: float = 0.01
    """Learning rate; the highest one of a schedule."""
    schedule: str = "constant"
    """One of `SCHEDULES`."""
    weight_decay: float = 0.0
    """Weight decay of the optimizer."""
    label_smoothing: float = 0.0
    """Share of a label that is spread over all classes while training; only for the loss `"cross-entropy"`."""
    flips: bool = False
    """Mirror images left to right, each with probability 1/2, while training."""
    shifts: int = 0
    """Shift images by up to this many pixels along each axis while training; pad with zeros."""
    quantized: int | None = None
    """Bits per weight, 8 or 4, for quantization-aware fine-tuning of a trained model: weights and activations are
    rounded while training as `to_c` rounds them, and the model is left with rounded weights."""
    seed: int = 0
    """Determines the order of examples, and dropout."""
    threads: int | None = 1
    """Threads of torch on the CPU; None keeps their number. One is the default because a result's last bits depend on
    the number, small networks gain nothing from more, and on a busy machine several wait for each other."""
    restore_best: bool = True
    """Leave the model with the weights of its best epoch by validation loss; otherwise with those of the last."""

    def __post_init__(self) -> None:
        check_one_of("loss", self.loss, LOSSES)
        check_one_of("optimizer", self.optimizer, OPTIMIZERS)
        check_one_of("schedule", self.schedule, SCHEDULES)
        object.__setattr__(self, "epochs", check_int("epochs", self.epochs))
        if self.batch_size is not None:
            object.__setattr__(self, "batch_size", check_int("batch_size", self.batch_size))
        if self.threads is not None:
            object.__setattr__(self, "threads", check_int("threads", self.threads))
        object.__setattr__(self, "seed", check_int("seed", self.seed, least=0))
        if self.seed >= 2**63:
            raise OptionError(f"seed must be less than 2**63: got {self.seed}")
        check_float("lr", self.lr, "a positive number", lambda lr: 0 < lr < math.inf)
        check_float("weight_decay", self.weight_decay, "a number of at least 0", lambda decay: 0 <= decay < math.inf)
        check_float("label_smoothing", self.label_smoothing, "a number in [0, 1)", lambda share: 0 <= share < 1)
        if self.label_smoothing and self.loss != "cross-entropy":
            raise OptionError(f"label_smoothing needs the loss 'cross-entropy': got {self.loss!r}")
        if self.quantized not in (None, 8, 4):
            raise OptionError(f"quantized must be 8 or 4 bits, or None: got {self.quantized!r}")
        object.__setattr__(self, "shifts", check_int("shifts", self.shifts, least=0))
        for name in ("restore_best", "flips"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False: got {getattr(self, name)!r}")


def make_optimizer(model: nn.Module, config: FitConfig) -> torch.optim.Optimizer:
    """The optimizer named in a config, for all parameters of a model.

    >>> type(make_optimizer(nn.Linear(3, 2), FitConfig(optimizer="adamw"))).__name__
    'AdamW'
    """
    # On the CPU, one fused call updates all parameters: for small models, separate updates take as long as the model.
    fused = all(p.device.type == "cpu" and p.is_floating_point() for p in model.parameters())
    return OPTIMIZERS[config.optimizer](  # type: ignore[call-arg]
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=fused
    )


def make_scheduler(
    optimizer: torch.optim.Optimizer, config: FitConfig, examples: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    """The learning rate schedule for a number of training examples; None for a constant rate."""
    if config.schedule == "constant":
        return None
    steps = config.epochs * (1 if config.batch_size is None else math.ceil(examples / config.batch_size))
    if config.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.lr, total_steps=max(steps, 2), cycle_momentum=False
    )
