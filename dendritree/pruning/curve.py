"""The accuracy of a model that is pruned to a series of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..errors import OptionError, check_int, check_one_of
from ..layers import DendriticLayer
from ..models.chain import chain_of
from ..models.sizing import parameters_of
from ..training import FitConfig, evaluate, fit
from ..training.examples import Split, split_to_fit
from .importance import measure
from .surgery import MOST_EXAMPLES, cut_to_budget

SHARES = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1)
"""The points of a curve, as fractions of the model's parameters."""


@dataclass(frozen=True)
class PruningPoint:
    """A pruned model."""

    parameters: int
    synapses: int
    """Synapses that are left in all dendritic layers."""
    loss: float
    accuracy: float
    """Accuracy; NaN for regression."""


def pruning_curve(
    model: nn.Module,
    data: Any,
    *,
    budgets: Sequence[int] | None = None,
    part: str = "val",
    loss: str = "cross-entropy",
    retrain: FitConfig | None = None,
) -> list[PruningPoint]:
    """Accuracy against size: the model pruned to several budgets by importance on training examples, each evaluated.

    Args:
        model: any model that `prune` accepts; it is not changed.
        data: what `fit` accepts; importance is measured on its first 1,000 training examples.
        budgets: numbers of parameters; by default shares of the model's own, from all to a tenth, where attainable.
        part: the part of the split to evaluate on: `"val"` or `"test"`.
        loss: as in `FitConfig`.
        retrain: how to retrain every pruned model before it is evaluated; None to skip retraining.

    Example:
        >>> import torch
        >>> from dendritree import MLNClassifier
        >>> net = MLNClassifier(64, 10, branching=8, output="logits")
        >>> curve = pruning_curve(net, (torch.randn(100, 64), torch.arange(100) % 10), budgets=[400])
        >>> curve[0].parameters <= 400
        True
    """
    split = data if isinstance(data, Split) else split_to_fit(data)
    examples = getattr(split, check_one_of("part", part, ("val", "test")))
    whole = parameters_of(model)
    wanted = [round(share * whole) for share in SHARES] if budgets is None else [*budgets]
    measured = measure(model, split.train.x[:MOST_EXAMPLES].flatten(1), None)
    points = []
    for budget in wanted:
        try:
            small = cut_to_budget(model, measured, check_int("budget", budget))
        except OptionError:
            if budgets is not None:
                raise
            break  # fractions only decrease: no later one is attainable
        if retrain is not None:
            fit(small, split, retrain)
        synapses = sum(step.forest.synapses for step in chain_of(small) if isinstance(step, DendriticLayer))
        points.append(PruningPoint(parameters_of(small), synapses, *evaluate(small, examples, loss)))
    return points
