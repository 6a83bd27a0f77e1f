"""The network of an estimator, and the defaults for its size and training."""

from __future__ import annotations

import itertools
import math
from typing import Any

from torch import nn

from ..errors import OptionError, check_one_of
from ..models import create_model
from ..models.presets import preset_options
from ..models.sizing import fill_budget, parameters_of

FAMILIES = ("tree", "sparse", "dense", "linear")
"""Of networks: with and without dendrites, and their controls."""
HIDDEN = 90
ROWS_PER_PARAMETER = 8
MOST_PARAMETERS = 20_000
STEPS = 2000
FEWEST_EPOCHS, MOST_EPOCHS = 15, 200
SMALL_BATCH, LARGE_BATCH, MANY_ROWS = 64, 256, 8000
MOST_DECAY, LEAST_DECAY, DECAYED_ROWS = 1.0, 0.01, 500


def auto_budget(rows: int, in_features: int, out_features: int) -> int:
    """Parameters for a table: those of an MLP with 90 hidden neurons, or one per eight rows of a long table.

    >>> auto_budget(150, in_features=4, out_features=3), auto_budget(40_000, in_features=8, out_features=1)
    (720, 5000)
    """
    return max(HIDDEN * (in_features + 1 + out_features), min(rows // ROWS_PER_PARAMETER, MOST_PARAMETERS))


def auto_batch_size(rows: int) -> int:
    """Rows per step, such that no batch has one row: batch normalization cannot learn from it.

    >>> auto_batch_size(1000), auto_batch_size(129)
    (64, 63)
    """
    return no_leftover(rows, SMALL_BATCH if rows < MANY_ROWS else LARGE_BATCH)


def no_leftover(rows: int, batch_size: int) -> int:
    """The batch size, or the next smaller one without a last batch of one row; if there is none, the next larger.

    >>> no_leftover(129, 64), no_leftover(129, 2)
    (63, 3)
    """
    sizes = itertools.chain(range(batch_size, 1, -1), range(batch_size + 1, rows + 1))
    return next(size for size in sizes if rows % size != 1)


def auto_epochs(rows: int, batch_size: int) -> int:
    """Epochs that make about two thousand steps, from 15 to 200.

    >>> auto_epochs(1500, batch_size=64), auto_epochs(40_000, batch_size=256)
    (84, 15)
    """
    return min(max(math.ceil(STEPS / math.ceil(rows / batch_size)), FEWEST_EPOCHS), MOST_EPOCHS)


def auto_weight_decay(rows: int) -> float:
    """Weight decay that is strong for few rows and weak for many.

    On tables of a few hundred rows 1.0 was worth up to six points of accuracy over 0.01, on California housing it cost
    two hundredths of R² (docs/tables.md).

    >>> auto_weight_decay(150), auto_weight_decay(10_000)
    (1.0, 0.05)
    """
    return float(min(max(DECAYED_ROWS / max(rows, 1), LEAST_DECAY), MOST_DECAY))


def make_network(neurons: str, in_features: int, out_features: int, budget: int, dropout: float = 0.0) -> nn.Module:
    """A network that gives logits or numbers, with at most `budget` parameters; a linear one has a fixed size.

    >>> sum(p.numel() for p in make_network("dense", 8, 1, budget=500).parameters())
    493
    """
    check_one_of("neurons", neurons, FAMILIES)
    options: dict[str, Any] = {"in_features": in_features, "out_features": out_features, "dropout": dropout}
    if neurons in ("tree", "sparse"):
        preset = preset_options(**options, budget=budget, neurons=neurons)
        return create_model("dendritic-network", **preset, output="logits")
    options["output"] = "logits"
    if neurons == "linear":
        return create_model("perceptrons", **options)
    options["norm"] = "batch"
    hidden = fill_budget("dense-network", options, (1.0,), budget)
    if hidden is None:
        least = parameters_of(create_model("dense-network", **options, hidden=[2], device="meta"))
        raise OptionError(f"budget must be at least {least:,} parameters for these sizes: got {budget:,}")
    return create_model("dense-network", **options, hidden=hidden)
