"""How accurate a model is when it is pruned to one size after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from ..data import Split
from ..errors import OptionError, check_int, check_one_of
from ..explanation import chain
from ..layers import DendriticLayer
from ..models.sizing import parameters_of
from ..training import FitConfig, evaluate, fit
from .importance import measure
from .surgery import cut_to_budget

__all__ = ["PruningPoint", "pruning_curve"]

SHARES = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1)
"""Of a model's parameters: where a curve has its points."""
MOST_EXAMPLES = 1000
"""Importance is measured on the first that many training examples: means settle long before."""


@dataclass(frozen=True)
class PruningPoint:
    """A pruned model on the curve."""

    parameters: int
    synapses: int
    """That are left, of all dendritic layers."""
    loss: float
    accuracy: float
    """NaN for regression."""


def pruning_curve(
    model: nn.Module,
    split: Split,
    *,
    budgets: Sequence[int] | None = None,
    part: str = "val",
    loss: str = "cross-entropy",
    retrain: FitConfig | None = None,
) -> list[PruningPoint]:
    """Accuracy against size: the model pruned to several budgets by importance on training examples, each judged.

    Args:
        model: as `prune` takes it; it is left as it is.
        split: the first 1,000 training examples measure importance.
        budgets: parameters of the points; by default shares of the model's own from all to a tenth, where attainable.
        part: of the split, that judges: `"val"` or `"test"`.
        loss: as in `FitConfig`.
        retrain: train every pruned model like that before it is judged.

    Example:
        >>> from dendritree import MLNClassifier
        >>> from dendritree.data import load_dataset
        >>> net = MLNClassifier(64, 10, branching=8, output="logits")
        >>> curve = pruning_curve(net, load_dataset("digits"), budgets=[400])
        >>> curve[0].parameters <= 400
        True
    """
    judges = getattr(split, check_one_of("part", part, ("val", "test")))
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
            break  # the shares fall: no later one is attainable
        if retrain is not None:
            fit(small, split, retrain)
        found, accuracy = evaluate(small, judges, loss)
        synapses = sum(step.forest.synapses for step in chain(small) if isinstance(step, DendriticLayer))
        points.append(PruningPoint(parameters_of(small), synapses, found, accuracy))
    return points
