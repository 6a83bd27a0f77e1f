"""Objects that hold a network and prepare rows for it: estimators, and pipelines, searches and table models of one.

They are recognized by their attributes, so that neither scikit-learn nor our own estimators are imported.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from torch import nn

from ..errors import OptionError

Holder = TypeVar("Holder")


def held_by(model: Any) -> Any:
    """The last step of a pipeline, or the estimator of a search or of a table model; None for anything else."""
    if hasattr(model, "steps"):
        return model.steps[-1][1]
    return model.estimator if hasattr(model, "encoding") else getattr(model, "best_estimator_", None)


def network_of(model: Any) -> nn.Module:
    """The network of a model: itself, or what an estimator, a pipeline, a search or a table model holds.

    >>> network_of(nn.Linear(2, 1))
    Linear(in_features=2, out_features=1, bias=True)
    """
    if isinstance(model, nn.Module):
        return model
    estimator = _estimator_of(model)
    network = getattr(estimator, "network_", None)
    if isinstance(network, nn.Module):
        return network
    if hasattr(estimator, "network_inputs"):
        raise OptionError(f"{type(estimator).__name__} must be fitted first: it has no network yet")
    name = type(model).__name__ if estimator is model else f"{type(model).__name__} of a {type(estimator).__name__}"
    raise OptionError(
        "the model must be an nn.Module, a DendriticClassifier or DendriticRegressor, a pipeline that ends in one or a "
        f"table model: got {name}"
    )


def with_network(model: Holder, network: nn.Module) -> Holder:
    """A copy of a model that holds another network; for a network, the other network itself."""
    if isinstance(model, nn.Module):
        return network  # type: ignore[return-value]
    twin = copy.deepcopy(model, {id(network_of(model)): network})
    _estimator_of(twin)._optimizer = None  # it has the weights of the network before
    return twin


def _estimator_of(model: Any) -> Any:
    """The innermost of the objects that hold one another."""
    held = held_by(model)
    return model if held is None else _estimator_of(held)
