"""Estimators on disk: the folder of a model, with what the estimator knows besides in its config. No pickle.

model/
  config.json          format and version, estimator, its options, classes, names of columns, the network's config
  weights.safetensors  the network's state dict, scales of inputs and targets
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import FormatError, OptionError, check_one_of, import_extra
from ..storage.folders import CONFIG_FILE, ESTIMATOR_FORMAT, FORMAT_VERSION, check_format, model_folder, read_json
from ..storage.models import build_model, check_config, load_state, model_config, read_tensors, write_files
from .base import DendriticEstimator
from .classifier import DendriticClassifier
from .regressor import DendriticRegressor
from .scaling import Standardizer

__all__ = ["load_estimator", "save_estimator", "write_estimator"]

ESTIMATORS: dict[str, type[DendriticEstimator]] = {
    "DendriticClassifier": DendriticClassifier,
    "DendriticRegressor": DendriticRegressor,
}


def save_estimator(estimator: DendriticEstimator, folder: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a folder, which `load_estimator` reads back; `dendritree.save` calls this."""
    config, state = _described(estimator)
    with model_folder(folder) as fresh:
        write_files(fresh, config, state)


def write_estimator(estimator: DendriticEstimator, folder: Path) -> None:
    """Write a fitted estimator's files into a folder that is there."""
    write_files(folder, *_described(estimator))


def _described(estimator: DendriticEstimator) -> tuple[dict[str, Any], dict[str, Tensor]]:
    import_extra("sklearn.utils.validation", extra="sklearn").check_is_fitted(estimator)
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise OptionError(f"an estimator must be one of {', '.join(ESTIMATORS)} to be saved: got {name}")
    names = getattr(estimator, "feature_names_in_", None)
    scales = {"inputs": estimator._scaling}
    config: dict[str, Any] = {
        "format": ESTIMATOR_FORMAT,
        "version": FORMAT_VERSION,
        "estimator": name,
        "options": {key: _plain(key, value) for key, value in estimator.get_params().items()},
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(each) for each in names],
        "epochs": int(estimator.n_iter_),
        "loss_curve": [float(loss) for loss in estimator.loss_curve_],
        "seed": estimator._seed,
        "network": model_config(estimator.network_),
    }
    if isinstance(estimator, DendriticClassifier):
        kind = "str" if estimator.classes_.dtype.kind in "UO" else str(estimator.classes_.dtype)
        config["classes"] = {"dtype": kind, "values": [_plain("classes", each) for each in estimator.classes_]}
    else:
        config["one_target"] = estimator._one_target
        scales["targets"] = estimator._target_scaling
    state = {f"network.{key}": value for key, value in estimator.network_.state_dict().items()}
    for part, scaling in scales.items():
        state[f"{part}.total"] = torch.tensor(scaling.total, dtype=torch.float64)
        state[f"{part}.mean"] = torch.from_numpy(scaling.mean)
        state[f"{part}.squares"] = torch.from_numpy(scaling.squares)
    return config, state


def _plain(key: str, value: Any) -> Any:
    """An option or a class as JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):  # weights of classes, which need not be texts
        return {"pairs": [[_plain(key, name), _plain(key, each)] for name, each in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise OptionError(f"{key} must be a plain value to be saved: got {value!r:.80}")


def load_estimator(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> DendriticEstimator:
    """Read an estimator that `save_estimator` wrote; `dendritree.load` calls this.

    It predicts as it did. `partial_fit` goes on from its weights, with a new optimizer.
    """
    path = Path(folder) / CONFIG_FILE
    config = read_json(Path(folder), CONFIG_FILE)
    check_format(config, path, ESTIMATOR_FORMAT)
    tensors = read_tensors(folder)
    try:
        return _rebuilt(config, tensors, Path(folder), device)
    except (KeyError, TypeError, AttributeError, OptionError) as error:
        raise FormatError(f"{path} does not describe an estimator: {type(error).__name__} {error}") from None


def _rebuilt(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], folder: Path, device: torch.device | str | None
) -> DendriticEstimator:
    name = check_one_of("estimator", config["estimator"], ESTIMATORS)
    options = {key: _option(value) for key, value in config["options"].items()}
    estimator = ESTIMATORS[name](**options | ({} if device is None else {"device": str(device)}))
    estimator.n_features_in_ = config["n_features"]
    if config["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    estimator.n_iter_, estimator.loss_curve_ = config["epochs"], list(config["loss_curve"])
    estimator.validation_loss_curve_ = None
    estimator._seed, estimator._optimizer = config["seed"], None
    estimator._scaling = _scaling(tensors, "inputs")
    if isinstance(estimator, DendriticClassifier):
        estimator.classes_ = np.array(config["classes"]["values"], dtype=np.dtype(config["classes"]["dtype"]))
    else:
        estimator._one_target = config["one_target"]
        estimator._target_scaling = _scaling(tensors, "targets")
    network = build_model(check_config(config["network"], folder / CONFIG_FILE), folder)
    prefix = "network."
    state = {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
    load_state(network, state, folder, config["network"])
    estimator.network_ = network.to(estimator.device).eval()
    return estimator


def _option(value: Any) -> Any:
    return dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value


def _scaling(tensors: Mapping[str, Tensor], part: str) -> Standardizer:
    return Standardizer(
        float(tensors[f"{part}.total"]), tensors[f"{part}.mean"].numpy(), tensors[f"{part}.squares"].numpy()
    )
