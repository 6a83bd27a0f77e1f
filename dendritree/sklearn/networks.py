"""The network of an estimator, and the defaults for its size and training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import nn

from ..errors import OptionError, check_one_of
from ..models import create_model
from ..models.presets import PRESET_NEURONS, preset_options
from ..models.sizing import fill_budget, parameters_of
from ..training.examples import no_leftover

FAMILIES = ("tree", "sparse", "dense", "linear")
"""Families of networks for tables: with and without dendrites, and their controls."""
HIDDEN = 100
PARAMETERS = 15_000
ENOUGH_ROWS = 1000
"""From this number on, a network has `PARAMETERS`; with fewer rows, that is too many for some tables."""
MEMBERS, FEWEST_MEMBERS, MOST_OUTPUTS = 16, 4, 64
"""Members of a committee, and the most outputs that they have together if there are more than four."""
STEPS_PER_ROW, FEWEST_STEPS, STEPS = 0.6, 200, 1300
FEW_ROWS, MANY_ROWS = 4000, 8000
SMALL_BATCH, MIDDLE_BATCH, LARGE_BATCH = 128, 192, 384
"""Shorter tables get fewer steps, longer ones larger batches."""
FEWEST_EPOCHS = 15


def auto_budget(in_features: int, out_features: int, rows: int) -> int:
    """Parameters for a table: 15,000; with fewer than 1,000 rows, at most as many as scikit-learn's MLPs have.

    >>> auto_budget(4, 3, rows=150), auto_budget(4, 3, rows=1000)
    (803, 15000)
    """
    mlp = HIDDEN * (in_features + 1) + (HIDDEN + 1) * out_features
    four_neurons = 4 * (in_features + out_features + 4)  # of a dense network, so that very wide tables have a control
    return max(PARAMETERS if rows >= ENOUGH_ROWS else min(mlp, PARAMETERS), four_neurons)


def auto_members(rows: int, trees: int, out_features: int) -> int:
    """Members of the committee that trains a network: four with fewer than 1,000 rows, otherwise up to 16.

    With many outputs there are fewer, because every member has all outputs; 1 means no committee.

    >>> auto_members(500, 80, 1), auto_members(1000, 80, 1), auto_members(1000, 80, 10), auto_members(5, 80, 1)
    (4, 16, 6, 2)
    """
    most = min(MEMBERS, max(FEWEST_MEMBERS, MOST_OUTPUTS // out_features)) if rows >= ENOUGH_ROWS else FEWEST_MEMBERS
    return max(1, min(most, rows // 2, trees // 2))


def auto_batch_size(rows: int) -> int:
    """Rows per step, such that no batch has a single row, from which batch normalization cannot learn.

    >>> auto_batch_size(1000), auto_batch_size(129), auto_batch_size(20_000)
    (128, 127, 384)
    """
    sizes = SMALL_BATCH if rows < FEW_ROWS else MIDDLE_BATCH if rows < MANY_ROWS else LARGE_BATCH
    return no_leftover(rows, sizes)


def auto_epochs(rows: int, batch_size: int) -> int:
    """Epochs for about 0.6 steps per row (200 to 1,300 steps in total), but at least 15.

    >>> auto_epochs(150, batch_size=128), auto_epochs(1500, batch_size=128), auto_epochs(40_000, batch_size=384)
    (100, 75, 15)
    """
    steps = min(max(STEPS_PER_ROW * rows, FEWEST_STEPS), STEPS)
    return max(math.ceil(steps / math.ceil(rows / batch_size)), FEWEST_EPOCHS)


def make_network(
    neurons: str,
    in_features: int,
    out_features: int,
    budget: int,
    dropout: float = 0.0,
    image_shape: Sequence[int] | None = None,
    branching: Any = None,
    wiring: Any = None,
) -> nn.Module:
    """A network that returns logits or numbers, with at most `budget` parameters; a linear one has a fixed size.

    `branching` and `wiring` replace those of the preset.

    >>> sum(p.numel() for p in make_network("dense", 8, 1, budget=500).parameters())
    493
    """
    check_one_of("neurons", neurons, (*PRESET_NEURONS, *FAMILIES[2:]))
    given = {name: value for name, value in (("branching", branching), ("wiring", wiring)) if value is not None}
    for name in given:  # sparse neurons have a wiring and no dendrites
        needed = PRESET_NEURONS if name == "wiring" else PRESET_NEURONS[:1]
        if neurons not in needed:
            raise OptionError(f"{name} needs neurons={' or '.join(map(repr, needed))}: got {neurons!r}")
    options: dict[str, Any] = {"in_features": in_features, "out_features": out_features, "dropout": dropout}
    if neurons == "linear":
        return create_model("perceptrons", **options, output="logits")
    if neurons == "dense":
        name, options["norm"] = "dense-network", "batch"
    else:
        name = "dendritic-network"
        options = preset_options(**options, budget=budget, image_shape=image_shape, neurons=neurons) | given
    if given or neurons == "dense":
        options.pop("hidden", None)
        options["hidden"] = fill_budget(name, options, (1.0,), budget)
    if options["hidden"] is None:
        least = parameters_of(create_model(name, **options | {"hidden": [2]}, device="meta"))
        raise OptionError(f"budget must be at least {least:,} parameters for these sizes: got {budget:,}")
    return create_model(name, **options, output="logits")
