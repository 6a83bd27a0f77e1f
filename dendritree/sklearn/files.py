"""Estimators as descriptions: options, classes, names of columns and scales, and the description of the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError, check_one_of, import_extra
from ..storage import folders
from .base import DendriticEstimator
from .classifier import DendriticClassifier
from .regressor import DendriticRegressor
from .scaling import Standardizer

ESTIMATORS: dict[str, type[DendriticEstimator]] = {
    "DendriticClassifier": DendriticClassifier,
    "DendriticRegressor": DendriticRegressor,
}
NETWORK = "network."
"""Prefix of the network's tensors."""
LEARNED = {"n_features": "n_features_in_", "epochs": "n_iter_", "loss_curve": "loss_curve_", "seed": "_seed"}
"""Entries of the config and the attributes that they are."""


def describe(estimator: DendriticEstimator) -> folders.Description:
    """What a fitted estimator was given and has learned."""
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise OptionError(f"an estimator must be one of {', '.join(ESTIMATORS)} to be saved: got {name}")
    import_extra("sklearn.utils.validation", extra="sklearn").check_is_fitted(estimator)
    network, state = folders.describe(estimator.network_)
    names = getattr(estimator, "feature_names_in_", None)
    config: dict[str, Any] = {
        "estimator": name,
        "options": {key: _plain(key, value) for key, value in estimator.get_params().items()},
        "feature_names": None if names is None else [str(each) for each in names],
        **{key: getattr(estimator, attribute) for key, attribute in LEARNED.items()},
        "network": network,
    }
    tensors = {f"{NETWORK}{key}": value for key, value in state.items()} | _scale_tensors("inputs", estimator._scaling)
    if isinstance(estimator, DendriticClassifier):
        kind = "str" if estimator.classes_.dtype.kind in "UO" else str(estimator.classes_.dtype)
        config["classes"] = {"dtype": kind, "values": [_plain("classes", each) for each in estimator.classes_]}
    else:
        config["one_target"] = estimator._one_target
        tensors |= _scale_tensors("targets", estimator._target_scaling)
    return config, tensors


def rebuild(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None
) -> DendriticEstimator:
    """The estimator of a description."""
    options = {key: _option(value) for key, value in config["options"].items()}
    estimator_class = ESTIMATORS[check_one_of("estimator", config["estimator"], ESTIMATORS)]
    estimator = estimator_class(**options | ({} if device is None else {"device": str(device)}))
    for key, attribute in LEARNED.items():
        setattr(estimator, attribute, config[key])
    if config["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    estimator.validation_loss_curve_ = estimator._optimizer = None
    estimator._scaling = _scaling("inputs", tensors)
    if isinstance(estimator, DendriticClassifier):
        estimator.classes_ = np.array(config["classes"]["values"], dtype=np.dtype(config["classes"]["dtype"]))
    else:
        estimator._one_target = config["one_target"]
        estimator._target_scaling = _scaling("targets", tensors)
    state = {key.removeprefix(NETWORK): tensor for key, tensor in tensors.items() if key.startswith(NETWORK)}
    estimator.network_ = folders.rebuild(config["network"], state, folders.MODEL_FORMAT, device=estimator.device)
    return estimator


def _plain(key: str, value: Any) -> Any:
    """An option or a class as JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):  # weights of classes, which need not be texts
        return {"pairs": [[_plain(key, name), _plain(key, each)] for name, each in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{key} must be a plain value to be saved: got {value!r:.80}")


def _option(value: Any) -> Any:
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def _scale_tensors(part: str, scaling: Standardizer) -> dict[str, Tensor]:
    return {f"{part}.{name}": torch.as_tensor(value, dtype=torch.float64) for name, value in vars(scaling).items()}


def _scaling(part: str, tensors: Mapping[str, Tensor]) -> Standardizer:
    total, mean, squares = (tensors[f"{part}.{name}"].numpy() for name in ("total", "mean", "squares"))
    return Standardizer(float(total), mean, squares)
