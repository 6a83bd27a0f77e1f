"""The one training loop of this project."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .checkpoints import Checkpoint
from .data import Examples, Split
from .errors import OptionError, check_int, check_one_of

__all__ = ["LOSSES", "OPTIMIZERS", "SCHEDULES", "Epoch", "FitConfig", "History", "Run", "evaluate", "fit"]


@dataclass(frozen=True)
class Loss:
    """A loss, and how to read a prediction off the same output."""

    per_example: Callable[[Tensor, Tensor], Tensor]
    """(outputs, targets) -> one loss per example."""
    correct: Callable[[Tensor, Tensor], Tensor] | None
    """(outputs, targets) -> whether each example is right; None for regression."""


def _mean_each(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1).mean(1)


def _binary(loss: Callable[..., Tensor], threshold: float) -> Loss:
    return Loss(
        lambda out, y: _mean_each(loss(out, y.to(out.dtype).reshape(out.shape), reduction="none")),
        lambda out, y: (out > threshold).reshape(len(y), -1).eq(y.reshape(len(y), -1).bool()).all(1),
    )


LOSSES: dict[str, Loss] = {
    "cross-entropy": Loss(
        lambda out, y: F.cross_entropy(out, y, reduction="none"), lambda out, y: out.argmax(-1).eq(y)
    ),
    "binary-probabilities": _binary(F.binary_cross_entropy, 0.5),
    "binary-logits": _binary(F.binary_cross_entropy_with_logits, 0.0),
    "squared-error": Loss(lambda out, y: _mean_each((out - y.reshape(out.shape)).square()), None),
}
"""Losses by name. `cross-entropy` takes logits; given probabilities it applies a second softmax, as the paper did."""

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
"""Optimizers by name."""

SCHEDULES = ("constant", "one-cycle")
"""Learning rate over time: constant, or up to `lr` and down to nothing."""


@dataclass(frozen=True)
class FitConfig:
    """How to train. Every field is checked when the config is made."""

    loss: str = "cross-entropy"
    """One of `LOSSES`."""
    epochs: int = 20
    """Passes over the training examples."""
    batch_size: int | None = 128
    """Examples a step; None takes all of them in every step."""
    optimizer: str = "adam"
    """One of `OPTIMIZERS`."""
    lr: float = 0.01
    """Learning rate; the highest one of a schedule."""
    schedule: str = "constant"
    """One of `SCHEDULES`."""
    weight_decay: float = 0.0
    """Weight decay of the optimizer."""
    seed: int = 0
    """Governs the order of examples and dropout."""
    restore_best: bool = True
    """Leave the model with the weights of its best epoch by validation loss, else with those of the last."""

    def __post_init__(self) -> None:
        check_one_of("loss", self.loss, LOSSES)
        check_one_of("optimizer", self.optimizer, OPTIMIZERS)
        check_one_of("schedule", self.schedule, SCHEDULES)
        object.__setattr__(self, "epochs", check_int("epochs", self.epochs))
        if self.batch_size is not None:
            object.__setattr__(self, "batch_size", check_int("batch_size", self.batch_size))
        object.__setattr__(self, "seed", check_int("seed", self.seed, least=0))
        if self.seed >= 2**63:
            raise OptionError(f"seed must be less than 2**63: got {self.seed}")
        if not (_is_number(self.lr) and 0 < self.lr < math.inf):
            raise OptionError(f"lr must be a positive number: got {self.lr!r}")
        if not (_is_number(self.weight_decay) and 0 <= self.weight_decay < math.inf):
            raise OptionError(f"weight_decay must be a number of at least 0: got {self.weight_decay!r}")
        if not isinstance(self.restore_best, bool):
            raise OptionError(f"restore_best must be True or False: got {self.restore_best!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Epoch:
    """What one epoch gave. Training figures are averages over its own steps, in training mode."""

    epoch: int
    train_loss: float
    val_loss: float
    train_acc: float
    """NaN for regression."""
    val_acc: float
    seconds: float


@dataclass
class History:
    """All epochs of a run, and the weights of the best one by validation loss."""

    config: FitConfig
    epochs: list[Epoch] = field(default_factory=list)
    best_state: dict[str, Tensor] = field(default_factory=dict, repr=False)
    interrupted: bool = False
    """The run was stopped by Ctrl-C; everything before that is here."""

    @property
    def best(self) -> Epoch:
        """The epoch with the lowest validation loss; the earlier one of equals, NaN last."""
        if not self.epochs:
            raise OptionError("a history must have at least one whole epoch to have a best one: got none")
        return min(self.epochs, key=lambda e: math.inf if math.isnan(e.val_loss) else e.val_loss)

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


def fit(
    model: nn.Module,
    split: Split,
    config: FitConfig | None = None,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
) -> History:
    """Train a model in place and return what happened.

    The result depends on the model's initial weights, the data and `config` alone: torch's random state is seeded
    for the run and put back afterwards. Ctrl-C ends the run between two steps; the history so far is returned with
    `interrupted` set.

    Args:
        model: gives outputs that fit `config.loss`.
        split: `train` is trained on, `val` evaluated after each epoch; `test` is not looked at.
        config: how to train.
        callbacks: called with the `Run` after each epoch, in this order: progress, early stopping.
        checkpoint: a file that is written after each epoch. If it is there the run goes on from it, with the same
            result as without a stop. A file of another model, other data or another config is refused, as is a damaged
            one, with `FormatError` and without a change to the model. What callbacks remember by themselves is not
            kept. Needs the extra `save`.

    Example:
        >>> from dendritree import MLNClassifier
        >>> from dendritree.data import load
        >>> net = MLNClassifier(64, 10, branching=8, output="logits")
        >>> history = fit(net, load("digits"), FitConfig(epochs=2))
        >>> [epoch.epoch for epoch in history.epochs]
        [0, 1]
    """
    config = config or FitConfig()
    device = _device(model)
    if not len(split.train) or not len(split.val):
        raise OptionError(f"fit needs training and validation examples: got {len(split.train)} and {len(split.val)}")
    train, val, loss = split.train.to(device), split.val.to(device), LOSSES[config.loss]
    optimizer = _optimizer(model, config)
    scheduler = _scheduler(optimizer, config, len(train))
    run = Run(model, optimizer, History(config))
    order = torch.Generator().manual_seed(config.seed)
    kept: Checkpoint | None = None
    if checkpoint is not None:
        data = {"train.x": split.train.x, "train.y": split.train.y, "val.x": split.val.x, "val.y": split.val.y}
        kept = Checkpoint(checkpoint, model, optimizer, scheduler, order, config=asdict(config), data=data)
    with _modes_kept(model), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(config.seed)
        if kept is not None:
            done = kept.go_on(Epoch)
            run.history.epochs, run.history.best_state, run.stop = done.epochs, done.best_state, done.stop
        try:
            for epoch in range(len(run.history.epochs), 0 if run.stop else config.epochs):
                start = time.perf_counter()
                train_loss, train_acc = _train_epoch(run, train, loss, scheduler, order)
                val_loss, val_acc = evaluate(model, val, config.loss)
                _record(run, Epoch(epoch, train_loss, val_loss, train_acc, val_acc, time.perf_counter() - start))
                for callback in callbacks:
                    callback(run)
                if kept is not None:
                    kept.write([asdict(each) for each in run.history.epochs], run.history.best_state, run.stop)
                if run.stop:
                    break
        except KeyboardInterrupt:
            run.history.interrupted = True
    if kept is not None:
        kept.tidy()
    if config.restore_best and run.history.best_state:
        model.load_state_dict(run.history.best_state)
    return run.history


@contextlib.contextmanager
def _modes_kept(model: nn.Module) -> Iterator[None]:
    """Put back the training mode of every module: a user may keep some frozen in evaluation mode."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    if parameter is None:
        raise OptionError(f"the model must have parameters: {type(model).__name__} has none")
    return parameter.device


def _train_epoch(
    run: Run,
    train: Examples,
    loss: Loss,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None,
    order: torch.Generator,
) -> tuple[float, float]:
    """One pass over the training examples; mean loss and accuracy in training mode."""
    run.model.train()
    totals = torch.zeros(2, dtype=torch.float64)  # read once an epoch: a sync per step would cost more than a step
    for batch in _batches(train, run.history.config.batch_size, order):
        out = run.model(batch.x)
        per_example = loss.per_example(out, batch.y)
        run.optimizer.zero_grad(set_to_none=True)
        per_example.mean().backward()  # type: ignore[no-untyped-call]
        run.optimizer.step()
        if scheduler is not None:
            scheduler.step()
        totals += _totals(loss, out, per_example, batch.y)
    mean_loss, accuracy = (totals / len(train)).tolist()
    return mean_loss, accuracy


@torch.no_grad()
def evaluate(
    model: nn.Module, examples: Examples, loss: str = "cross-entropy", batch_size: int = 4096
) -> tuple[float, float]:
    """Mean loss and accuracy (NaN for regression) of a model in evaluation mode.

    >>> from dendritree import Perceptrons
    >>> from dendritree.data import load
    >>> loss, accuracy = evaluate(Perceptrons(64, 10, output="logits"), load("digits").test)
    >>> 0 <= accuracy <= 1
    True
    """
    judge = LOSSES[check_one_of("loss", loss, LOSSES)]
    batch_size = check_int("batch_size", batch_size)
    if not len(examples):
        raise OptionError("evaluate needs at least one example: got none")
    totals = torch.zeros(2, dtype=torch.float64)
    with _modes_kept(model):
        model.eval()
        for batch in _batches(examples.to(_device(model)), batch_size, None):
            out = model(batch.x)
            totals += _totals(judge, out, judge.per_example(out, batch.y), batch.y)
    mean_loss, accuracy = (totals / len(examples)).tolist()
    return mean_loss, accuracy


def _totals(loss: Loss, out: Tensor, per_example: Tensor, y: Tensor) -> Tensor:
    """Summed loss and number of right answers of a batch."""
    correct = loss.correct(out.detach(), y) if loss.correct else torch.full_like(per_example.detach(), math.nan)
    return torch.stack([per_example.detach().double().sum(), correct.double().sum()]).cpu()


def _batches(examples: Examples, batch_size: int | None, order: torch.Generator | None) -> Iterator[Examples]:
    """Batches in order, or shuffled by a generator; a full batch is never shuffled or copied."""
    total = len(examples)
    if batch_size is None or (order is None and batch_size >= total):
        yield examples
        return
    shuffled = None if order is None else torch.randperm(total, generator=order).to(examples.x.device)
    for start in range(0, total, batch_size):
        pick = slice(start, start + batch_size) if shuffled is None else shuffled[start : start + batch_size]
        yield Examples(examples.x[pick], examples.y[pick])


def _optimizer(model: nn.Module, config: FitConfig) -> torch.optim.Optimizer:
    """On the CPU one fused call updates all parameters: for small models the others take as long as the model."""
    fused = all(p.device.type == "cpu" and p.is_floating_point() for p in model.parameters())
    return OPTIMIZERS[config.optimizer](  # type: ignore[call-arg]
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=fused
    )


def _scheduler(
    optimizer: torch.optim.Optimizer, config: FitConfig, examples: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    if config.schedule == "constant":
        return None
    steps = config.epochs * (1 if config.batch_size is None else math.ceil(examples / config.batch_size))
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.lr, total_steps=max(steps, 2), cycle_momentum=False
    )


def _record(run: Run, epoch: Epoch) -> None:
    run.history.epochs.append(epoch)
    if run.history.best is epoch:
        run.history.best_state = {key: value.detach().clone() for key, value in run.model.state_dict().items()}
