"""The network of an estimator, and how large and how long it is where nobody says."""

from __future__ import annotations

import itertools
import math
from typing import Any

from torch import nn

from ..budget import count
from ..errors import OptionError, check_one_of
from ..models import create_model
from ..models.presets import preset_options
from ..models.sizing import fill_budget

__all__ = ["NEURONS", "auto_batch_size", "auto_budget", "auto_epochs", "auto_weight_decay", "make_network"]

NEURONS = ("tree", "sparse", "dense", "linear")
HIDDEN = 90
ROWS_PER_PARAMETER = 8
MOST_PARAMETERS = 20_000
STEPS = 2000
FEWEST_EPOCHS, MOST_EPOCHS = 15, 200
SMALL_BATCH, LARGE_BATCH, MANY_ROWS = 64, 256, 8000
MOST_DECAY, LEAST_DECAY, DECAYED_ROWS = 1.0, 0.01, 500


def auto_budget(rows: int, in_features: int, out_features: int) -> int:
    """Parameters for a table: what an MLP of 90 hidden neurons has, or one for eight rows of a long table.

    >>> auto_budget(150, in_features=4, out_features=3), auto_budget(40_000, in_features=8, out_features=1)
    (720, 5000)
    """
    return max(HIDDEN * (in_features + 1 + out_features), min(rows // ROWS_PER_PARAMETER, MOST_PARAMETERS))


def auto_batch_size(rows: int) -> int:
    """Examples a step, such that none is ever alone: batch normalisation cannot learn from one.

    >>> auto_batch_size(1000), auto_batch_size(129)
    (64, 63)
    """
    return no_leftover(rows, SMALL_BATCH if rows < MANY_ROWS else LARGE_BATCH)


def no_leftover(rows: int, batch_size: int) -> int:
    """The batch size, or the next smaller one that leaves no single row over; where there is none, the next larger.

    >>> no_leftover(129, 64), no_leftover(129, 2)
    (63, 3)
    """
    sizes = itertools.chain(range(batch_size, 1, -1), range(batch_size + 1, rows + 1))
    return next(size for size in sizes if rows % size != 1)


def auto_epochs(rows: int, batch_size: int) -> int:
    """Epochs that make about two thousand steps; never very few, never very many.

    >>> auto_epochs(1500, batch_size=64), auto_epochs(40_000, batch_size=256)
    (84, 15)
    """
    return min(max(math.ceil(STEPS / math.ceil(rows / batch_size)), FEWEST_EPOCHS), MOST_EPOCHS)


def auto_weight_decay(rows: int) -> float:
    """Weight decay that is strong for few rows and next to nothing for many.

    On tables of a few hundred rows 1.0 was worth up to six points of accuracy over 0.01, on California housing it cost
    two hundredths of R² (docs/tables.md).

    >>> auto_weight_decay(150), auto_weight_decay(10_000)
    (1.0, 0.05)
    """
    return float(min(max(DECAYED_ROWS / max(rows, 1), LEAST_DECAY), MOST_DECAY))


def make_network(neurons: str, in_features: int, out_features: int, budget: int, dropout: float = 0.0) -> nn.Module:
    """A network that gives logits or numbers, with at most `budget` parameters; one linear unit has what it has.

    >>> sum(p.numel() for p in make_network("dense", 8, 1, budget=500).parameters())
    493
    """
    if check_one_of("neurons", neurons, NEURONS) == "linear":
        return create_model(
            "perceptrons", in_features=in_features, out_features=out_features, dropout=dropout, output="logits"
        )
    sizes: dict[str, Any] = {"in_features": in_features, "out_features": out_features}
    if neurons != "dense":
        options = preset_options(**sizes, budget=budget, neurons=neurons, dropout=dropout)
        return create_model("dendritic-network", **options, output="logits")
    options = {**sizes, "norm": "batch", "dropout": dropout, "output": "logits"}
    hidden = fill_budget("dense-network", options, (1.0,), budget)
    if hidden is None:
        least = count(create_model("dense-network", **options, hidden=[2], device="meta")).total
        raise OptionError(f"budget must be at least {least:,} parameters for these sizes: got {budget:,}")
    return create_model("dense-network", **options, hidden=hidden)
