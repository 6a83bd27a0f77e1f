"""Descriptions of estimators: options, classes, column names and scales, and the description of the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import FormatError, OptionError, check_int, check_one_of
from ..storage import folders
from ..storage.folders import entry
from ..storage.models import decode_argument, encode_argument
from ..wiring import Wiring
from .classifier import DendriticClassifier
from .estimator import DendriticEstimator, preprocessing, validation
from .regressor import DendriticRegressor

ESTIMATORS: dict[str, type[DendriticEstimator]] = {
    "DendriticClassifier": DendriticClassifier,
    "DendriticRegressor": DendriticRegressor,
}
NETWORK = "network."
"""Prefix of the network's tensors."""
OPTIMIZER = "optimizer."
"""Prefix of the tensors of the optimizer of `partial_fit`, followed by the place of a parameter."""
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""The state that AdamW keeps per parameter."""
LEARNED = {"n_features": "n_features_in_", "epochs": "n_iter_", "loss_curve": "loss_curve_", "seed": "_seed"}
"""Entries of the config, and the corresponding attributes."""
SCALER = ("n_samples_seen_", "mean_", "var_", "scale_")
"""The attributes of a fitted `StandardScaler`."""
CLASS_KINDS = "biufU"
"""NumPy's kind codes of the types that classes may have: booleans, numbers, strings."""


def describe(estimator: DendriticEstimator) -> folders.Description:
    """The options of a fitted estimator and what it has learned."""
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise OptionError(f"an estimator must be one of {', '.join(ESTIMATORS)} to be saved: got {name}")
    validation.check_is_fitted(estimator)
    network, state = folders.describe(estimator.network_)
    names = getattr(estimator, "feature_names_in_", None)
    config: dict[str, Any] = {
        "estimator": name,
        "options": {key: _plain(key, value) for key, value in estimator.get_params().items()},
        "feature_names": None if names is None else [str(each) for each in names],
        **{key: getattr(estimator, attribute) for key, attribute in LEARNED.items()},
        "network": network,
    }
    tensors = {f"{NETWORK}{key}": value for key, value in state.items()} | _scaler_tensors("inputs", estimator._scaler)
    config["missing"] = estimator._missing.tolist()
    if isinstance(estimator, DendriticClassifier):
        kind = "str" if estimator.classes_.dtype.kind in "UO" else str(estimator.classes_.dtype)
        config["classes"] = {"dtype": kind, "values": [_plain("classes", each) for each in estimator.classes_]}
    else:
        config["one_target"] = estimator._one_target
        tensors |= _scaler_tensors("targets", estimator._target_scaler)
    if estimator._optimizer is not None:
        for place, moments in estimator._optimizer.state_dict()["state"].items():
            tensors |= {f"{OPTIMIZER}{place}.{name}": value for name, value in moments.items()}
    return config, tensors


def rebuild(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None
) -> DendriticEstimator:
    """The estimator of a description, on a device selected by the caller, not the file."""
    options = {key: _option(value) for key, value in entry(config, "options", dict).items()}
    estimator_class = ESTIMATORS[check_one_of("estimator", config.get("estimator"), ESTIMATORS)]
    estimator = estimator_class(**options | {"device": "cpu" if device is None else str(device)})
    _check_learned(config)
    for key, attribute in LEARNED.items():
        setattr(estimator, attribute, config[key])
    if config["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    estimator.validation_loss_curve_ = estimator._optimizer = None
    if isinstance(estimator, DendriticClassifier):
        estimator.classes_ = _classes(entry(config, "classes", dict))
    else:
        estimator._one_target = entry(config, "one_target", bool)
        estimator._target_scaler = _scaler("targets", tensors)
    estimator._scaler = _scaler("inputs", tensors)
    estimator._missing = np.array(config.get("missing", []), dtype=np.int64)
    state = {key.removeprefix(NETWORK): tensor for key, tensor in tensors.items() if key.startswith(NETWORK)}
    estimator.network_ = folders.rebuild(config.get("network"), state, folders.MODEL_FORMAT, device=estimator.device)
    sizes = [config["network"]["arguments"].get(key) for key in ("in_features", "out_features")]
    expected = [config["n_features"] + len(estimator._missing), estimator._head()[0]]
    if sizes != expected or len(estimator._scaler.mean_) != config["n_features"]:
        rule = "the network of an estimator must read n_features and flags, and return one output per target or class"
        raise FormatError(f"{rule}, {expected[0]} and {expected[1]}: got {sizes}")
    estimator._optimizer = _optimizer(estimator, tensors)
    return estimator


def _optimizer(estimator: DendriticEstimator, tensors: Mapping[str, Tensor]) -> torch.optim.Optimizer | None:
    """The optimizer with which `partial_fit` continues; None if there was none."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(OPTIMIZER):
            place, _, name = key.removeprefix(OPTIMIZER).partition(".")
            state.setdefault(int(place), {})[name] = value
    if not state:
        return None
    optimizer = estimator._new_optimizer()
    shapes = [weight.shape for weight in estimator.network_.parameters()]
    fits = {name: sorted(MOMENTS) for name in range(len(shapes))} == {
        name: sorted(each) for name, each in state.items()
    }
    if not fits or any(each[name].shape != shapes[n] for n, each in state.items() for name in MOMENTS[1:]):
        raise FormatError("the optimizer of an estimator must have state for each parameter, of the parameter's shape")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return optimizer


def _check_learned(config: Mapping[str, Any]) -> None:
    """Raise if learned values have types or sizes that `describe` would not write."""
    features, losses = check_int("n_features", config.get("n_features")), entry(config, "loss_curve", list)
    for key in ("epochs", "seed"):
        check_int(key, config.get(key), least=0)
    if not all(type(loss) is float for loss in losses):
        raise FormatError(f"loss_curve in {folders.CONFIG_FILE} must hold numbers: got {losses!r:.60}")
    if not set(config.get("missing", [])) <= set(range(features)):
        raise FormatError(f"missing must be indices of columns, below {features}: got {config['missing']!r:.60}")
    names = entry(config, "feature_names", list, type(None))
    if names is not None and not (len(names) == features and all(type(name) is str for name in names)):
        raise FormatError(f"feature_names must be {features} strings, one per feature: got {names!r:.60}")


def _classes(config: Mapping[str, Any]) -> Any:
    """Classes in their original type, sorted and unique."""
    kind, values = np.dtype(entry(config, "dtype", str)), entry(config, "values", list)
    classes = np.array(values, dtype=kind) if kind.kind in CLASS_KINDS else np.empty(0)
    if classes.tolist() != values or len(values) < 2 or len(np.unique(classes)) < len(values):
        raise FormatError(f"classes must be at least two different values of one type: got {values!r:.60} as {kind}")
    return classes


def _plain(key: str, value: Any) -> Any:
    """An option or a class as JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):  # weights of classes, which need not be strings
        return {"pairs": [[_plain(key, name), _plain(key, each)] for name, each in value.items()]}
    if isinstance(value, Wiring):
        return encode_argument(key, value)
    if isinstance(value, list | tuple):  # the shape of an image or of a tree
        return [_plain(key, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{key} must be a plain value to be saved: got {value!r:.80}")


def _option(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict) and "wiring" in value:
        return decode_argument(value)
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def _scaler_tensors(part: str, scaler: Any) -> dict[str, Tensor]:
    return {f"{part}.{name}": torch.as_tensor(getattr(scaler, name), dtype=torch.float64) for name in SCALER}


def _scaler(part: str, tensors: Mapping[str, Tensor]) -> Any:
    """The fitted `StandardScaler` of the inputs or the targets."""
    scaler = preprocessing.StandardScaler()
    for name in SCALER:
        values = tensors[f"{part}.{name}"]
        if not values.isfinite().all():
            raise FormatError(f"{name} of the scaler of {part} must be finite: got {values}")
        setattr(scaler, name, values.double().numpy())
    if not scaler.mean_.shape == scaler.var_.shape == scaler.scale_.shape == (scaler.mean_.size,):
        raise FormatError(f"the scaler of {part} must have a mean, a variance and a scale per column")
    scaler.n_features_in_ = scaler.mean_.size
    return scaler
