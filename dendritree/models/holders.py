"""Objects that hold a network and prepare rows for it: estimators, table models, pipelines and searches with one.

They are recognized by their attributes, so that neither scikit-learn nor this library's estimators are imported.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, TypeVar

from torch import nn

from ..errors import OptionError

Holder = TypeVar("Holder")


def held_by(model: Any) -> Any:
    """The last step of a pipeline, or the estimator of a search or of a table model; None for anything else."""
    if hasattr(model, "steps"):
        return model.steps[-1][1]
    if hasattr(model, "encoding"):
        return model.estimator
    return getattr(model, "best_estimator_", None)


def network_of(model: Any) -> nn.Module:
    """The network of a model: itself, or what an estimator, a pipeline, a search or a table model holds.

    >>> network_of(nn.Linear(2, 1))
    Linear(in_features=2, out_features=1, bias=True)
    """
    if isinstance(model, nn.Module):
        return model
    inner, held = model, held_by(model)
    while held is not None:
        inner, held = held, held_by(held)
    network = getattr(inner, "network_", None)
    if isinstance(network, nn.Module):
        return network
    if hasattr(inner, "network_inputs"):
        raise OptionError(f"{type(inner).__name__} must be fitted first: it has no network yet")
    name = type(model).__name__ if inner is model else f"{type(model).__name__} of a {type(inner).__name__}"
    raise OptionError(
        "the model must be an nn.Module, a DendriticClassifier or DendriticRegressor, a pipeline that ends in one or a "
        f"table model: got {name}"
    )


def with_network(model: Holder, network: nn.Module) -> Holder:
    """A copy of a model that holds another network and shares the rest; for a network, the other network itself."""
    if isinstance(model, nn.Module):
        return network  # type: ignore[return-value]
    twin: Any = copy.copy(model)
    inner = held_by(model)
    if inner is None:
        twin.network_, twin._optimizer = network, None
    elif hasattr(model, "steps"):
        twin.steps = [*model.steps[:-1], (model.steps[-1][0], with_network(inner, network))]
    elif hasattr(model, "encoding"):
        twin = dataclasses.replace(twin, estimator=with_network(inner, network))
    else:
        twin.best_estimator_ = with_network(inner, network)
    return twin  # type: ignore[no-any-return]
