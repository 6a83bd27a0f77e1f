"""Training after pruning, within a stated time."""

from __future__ import annotations

import time

from torch import nn

from ..errors import check_float
from ..training import FitConfig, fit
from ..training.examples import Split
from ..training.history import Callback, Run

EPOCHS, RATE = 5, 0.003
"""MNIST, the preset of 2,000 parameters pruned to 1,000: test accuracy 0.962 before, 0.978 after three epochs."""


def retrain(model: nn.Module, split: Split, config: FitConfig | None, seconds: float) -> None:
    """Train a pruned model in place, for at most about `seconds` but at least one epoch; 0 skips training."""
    check_float("seconds", seconds, "a number of at least 0", lambda value: value >= 0)
    if not seconds:
        return
    if config is None:
        numbers = split.train.y.is_floating_point()
        config = FitConfig("squared-error" if numbers else "cross-entropy", EPOCHS, lr=RATE, schedule="cosine")
    fit(model, split, config, callbacks=[_stop_after(seconds)])


def _stop_after(seconds: float) -> Callback:
    """A callback that stops a run if the next epoch would end later."""
    start = time.perf_counter()

    def stop(run: Run) -> None:
        run.stop = run.stop or time.perf_counter() - start + run.history.epochs[-1].seconds > seconds

    return stop
