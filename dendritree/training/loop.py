"""The training loop."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_one_of
from ..models.modes import evaluating, modes_kept
from ..randomness import seeded
from .augmentation import Augmentation
from .checkpoint import Checkpoint
from .config import FitConfig, make_optimizer, make_scheduler
from .examples import Examples, Split, split_to_fit
from .history import Callback, Epoch, History, Run
from .losses import LOSSES, Loss, check_output, check_split, check_targets, smooth_labels
from .memory import memory_kept
from .progress import show_progress
from .quantization import rounded
from .threads import torch_threads

AT_ONCE = 1 << 18
"""Tensor elements copied or counted at once, across batches: for small batches, the overhead would exceed the work."""


def fit(
    model: nn.Module,
    data: Any,
    config: FitConfig | None = None,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    verbose: bool = False,
) -> History:
    """Train a model in place and return its history.

    The result depends only on the model's initial weights, the data and `config`: torch's random state is seeded for
    the run and restored afterwards. All threads share it; for runs in threads, see `randomness.own_draws`. Ctrl-C ends
    the run between two steps; the history so far is returned with `interrupted` set.

    Args:
        model: any model whose outputs fit `config.loss`.
        data: a `Split`, or a pair (x, y), a dataset or a loader, of which a fifth is used for validation
            (`split_to_fit`). The model is trained on `train` and evaluated on `val` after each epoch; `test` is not
            used. Validation examples may be absent only with `restore_best=False`; their metrics are then NaN. Example
            weights count in the loss and all metrics. x has the shape that the model takes; models of this library
            take images (n, channels, height, width) or (n, height, width). Unless they come in a `Split`, uint8 images
            are divided by 255, as they must be for predictions too.
        config: how to train.
        callbacks: called with the `Run` after each epoch, in the given order, for progress, early stopping and so on.
            If a callback has a method `check_model`, it is called with the model before the first epoch.
        checkpoint: a file that is written after each epoch. If it exists, the run resumes from it, with the same result
            as an uninterrupted run. A file of another model, other data or another config raises `FormatError`, as does
            a damaged one; the model is then unchanged. The state of callbacks is not saved.
        optimizer: an optimizer of the model's parameters, to continue with its state where an earlier run ended; by
            default a new one, according to `config`.
        verbose: show the epochs and the time left: a bar in a terminal or notebook, a line per epoch in a log.

    Example:
        >>> from dendritree import MLNClassifier
        >>> net = MLNClassifier(64, 10, branching=8, output="logits")
        >>> history = fit(net, (torch.randn(100, 64), torch.arange(100) % 10), FitConfig(epochs=2))
        >>> [epoch.epoch for epoch in history.epochs]
        [0, 1]
    """
    config = config or FitConfig()
    if config.quantized is not None:
        options: dict[str, Any] = {"callbacks": callbacks, "checkpoint": checkpoint, "optimizer": optimizer}
        with rounded(model, config.quantized):
            history = fit(model, data, replace(config, quantized=None), verbose=verbose, **options)
        history.config = config
        history.best_state = {key: value.detach().clone() for key, value in model.state_dict().items()}
        return history
    device = _device(model)
    split = data if isinstance(data, Split) else split_to_fit(data)
    check_split(split, config.loss)
    check_output(model, config.loss)
    for callback in callbacks:
        if check := getattr(callback, "check_model", None):
            check(model)
    if not len(split.train) or (not len(split.val) and config.restore_best):
        raise OptionError(f"fit needs training and validation examples: got {len(split.train)} and {len(split.val)}")
    train, val, loss = split.train.to(device), split.val.to(device), LOSSES[config.loss]
    augmentation = Augmentation.of(config, model, split)
    optimizer = make_optimizer(model, config) if optimizer is None else optimizer
    scheduler = make_scheduler(optimizer, config, len(train))
    history = History(config)
    run = Run(model, optimizer, history)
    order = torch.Generator().manual_seed(config.seed)
    saver = None if checkpoint is None else Checkpoint(checkpoint, run, scheduler, order, split)
    after_epoch: list[Callback] = [*callbacks]
    after_epoch += [] if saver is None else [saver]
    after_epoch += [show_progress] if verbose else []
    with modes_kept(model), seeded(config.seed, device), torch_threads(config.threads), memory_kept():
        if saver is not None:
            saver.resume()
        best = history.best if history.epochs else None
        try:
            for number in range(len(history.epochs), 0 if run.stop else config.epochs):
                start = time.perf_counter()
                train_loss, train_acc = _train_epoch(run, train, loss, scheduler, order, augmentation)
                val_loss, val_acc = evaluate(model, val, config.loss) if len(val) else (math.nan, math.nan)
                epoch = Epoch(number, train_loss, val_loss, train_acc, val_acc, time.perf_counter() - start)
                history.epochs.append(epoch)
                if best is None or epoch.better_than(best):
                    best = epoch
                    history.best_state = {key: value.detach().clone() for key, value in model.state_dict().items()}
                for callback in after_epoch:
                    callback(run)
                if run.stop:
                    break
        except KeyboardInterrupt:
            history.interrupted = True
    if config.restore_best and history.best_state:
        model.load_state_dict(history.best_state)
    return history


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
    augmentation: Augmentation | None,
) -> tuple[float, float]:
    """One pass over the training examples; return mean loss and accuracy in training mode."""
    run.model.train()
    sums, smoothing = _Sums(loss), run.history.config.label_smoothing
    parameters = [parameter for group in run.optimizer.param_groups for parameter in group["params"]]
    # Divided by the mean of all weights, not of the batch, so that an example counts the same in any batch.
    mean_weight = 1.0 if train.weight is None else train.weight.mean()
    for batch in _batches(train, run.history.config.batch_size, order):
        for parameter in parameters:  # `zero_grad` takes ten times as long
            parameter.grad = None
        out = run.model(batch.x if augmentation is None else augmentation(batch.x, order))
        per_example = loss.per_example(out, batch.y)
        target = smooth_labels(per_example, out, smoothing) if smoothing else per_example
        weighted = target if batch.weight is None else target * batch.weight / mean_weight
        weighted.mean().backward()  # type: ignore[no-untyped-call]
        run.optimizer.step()
        if scheduler is not None:
            scheduler.step()
        sums.add(out.detach(), per_example.detach(), batch)
    return sums.means()


@torch.no_grad()
def evaluate(
    model: nn.Module, examples: Examples, loss: str = "cross-entropy", batch_size: int | None = None
) -> tuple[float, float]:
    """Mean loss and accuracy (NaN for regression) of a model in evaluation mode.

    By default, larger examples come in smaller batches, so that feature maps of images stay in the CPU caches.

    >>> from dendritree.models import Perceptrons
    >>> examples = Examples(torch.randn(20, 64), torch.arange(20) % 10)
    >>> loss, accuracy = evaluate(Perceptrons(64, 10, output="logits"), examples)
    >>> 0 <= accuracy <= 1
    True
    """
    figures = LOSSES[check_one_of("loss", loss, LOSSES)]
    if not len(examples):
        raise OptionError("evaluate needs at least one example: got none")
    if batch_size is None:
        batch_size = max(64, AT_ONCE * len(examples) // max(1, examples.x.numel()))
    batch_size = check_int("batch_size", batch_size)
    check_targets(examples.y, loss)
    sums = _Sums(figures)
    with evaluating(model):
        for batch in _batches(examples.to(_device(model)), batch_size, None):
            out = model(batch.x)
            sums.add(out, figures.per_example(out, batch.y), batch)
    return sums.means()


class _Batch(NamedTuple):
    """The examples of one step."""

    x: Tensor
    y: Tensor
    weight: Tensor | None


def _batches(examples: Examples, batch_size: int | None, order: torch.Generator | None) -> Iterator[_Batch]:
    """Batches in order, or shuffled by a generator; a full batch is never shuffled or copied."""
    parts = examples.x, examples.y, examples.weight
    total = len(examples)
    if batch_size is None or (order is None and batch_size >= total):
        yield _Batch(*parts)
        return
    # Several batches are copied at once; each is a slice of the copy.
    step = max(1, AT_ONCE * total // max(1, examples.x.numel()) // batch_size) * batch_size
    shuffled = None if order is None else torch.randperm(total, generator=order).to(examples.x.device)
    for start in range(0, total, step):
        rows = slice(start, start + step) if shuffled is None else shuffled[start : start + step]
        x, y, weight = (None if part is None else torch.split(part[rows], batch_size) for part in parts)
        yield from map(_Batch, x or (), y or (), weight or itertools.repeat(None))


class _Sums:
    """Sums of loss, correct predictions and weights of all batches so far.

    Batches are held until there are enough numbers to count at once, and sums stay tensors until `means` reads them:
    synchronizing with a device after each step would cost more than the step.
    """

    def __init__(self, loss: Loss) -> None:
        self.correct = loss.correct
        self.held: list[tuple[Tensor, Tensor, _Batch]] = []
        self.numbers = 0
        self.sums: list[Tensor] = []

    def add(self, out: Tensor, per_example: Tensor, batch: _Batch) -> None:
        """Add a batch, each example by its weight."""
        self.held.append((out, per_example, batch))
        self.numbers += out.numel()
        if self.numbers >= AT_ONCE:
            self._count()

    def _count(self) -> None:
        """Sum the held batches, each separately; all but the last have the same size."""
        outs, losses, batches = zip(*self.held, strict=True)
        loss, size = torch.cat(losses).double(), len(losses[0])
        right = torch.full_like(loss, math.nan)
        if self.correct is not None:
            right = self.correct(torch.cat(outs), torch.cat([batch.y for batch in batches])).double()
        values = torch.stack([loss, right, torch.ones_like(loss)])
        if batches[0].weight is not None:
            values = values * torch.cat([batch.weight for batch in batches]).double()
        whole = len(loss) // size * size
        self.sums.append(values[:, :whole].reshape(3, -1, size).sum(2))
        if whole < len(loss):
            self.sums.append(values[:, whole:].sum(1, keepdim=True))
        self.held, self.numbers = [], 0

    def means(self) -> tuple[float, float]:
        """Mean loss and accuracy (NaN for regression, and if all weights are 0)."""
        if self.held:
            self._count()
        loss, right, total = (sum(sums) for sums in torch.cat(self.sums, dim=1).tolist())
        total = total or math.nan
        return loss / total, right / total
