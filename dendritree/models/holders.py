"""Objects that hold a network and prepare rows for it: our estimators, and the lab's table models, which wrap one.

They are recognized by their attributes, so that neither scikit-learn nor our own estimators are imported.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from torch import nn

from ..errors import OptionError

Holder = TypeVar("Holder")


def estimator_of(model: Any) -> Any:
    """The estimator of a table model; anything else is returned as it is."""
    return model.estimator if hasattr(model, "encoding") else model


def network_of(model: Any) -> nn.Module:
    """The network of a model: itself, or what an estimator or a table model holds.

    >>> network_of(nn.Linear(2, 1))
    Linear(in_features=2, out_features=1, bias=True)
    """
    if isinstance(model, nn.Module):
        return model
    estimator = estimator_of(model)
    network = getattr(estimator, "network_", None)
    if isinstance(network, nn.Module):
        return network
    if hasattr(estimator, "network_inputs"):
        raise OptionError(f"{type(estimator).__name__} must be fitted first: it has no network yet")
    raise OptionError(
        "the model must be an nn.Module, a DendriticClassifier or DendriticRegressor, or a table model; for a "
        f"pipeline, pass its last step and transformed rows: got {type(model).__name__}"
    )


def with_network(model: Holder, network: nn.Module) -> Holder:
    """A copy of a model that holds another network; for a network, the other network itself."""
    if isinstance(model, nn.Module):
        return network  # type: ignore[return-value]
    twin = copy.deepcopy(model, {id(network_of(model)): network})
    estimator_of(twin)._optimizer = None  # it refers to the weights of the previous network
    return twin
