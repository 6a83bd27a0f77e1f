"""Models on disk: a folder with a JSON config and a safetensors file. No pickle.

    model/
      config.json          format and version, model name, arguments, dtype; `trees` for a model that was pruned
      weights.safetensors  the state dict, trees and wiring included

A folder appears whole or not at all: it is written beside its place and then renamed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import DendritreeError, FormatError, OptionError, import_extra
from ..layers import DendriticLayer
from ..layers.state import FOREST_KEYS, WINDOWS_KEY, read_forest, read_windows
from ..models.registry import create_model, model_origin
from ..wiring import WIRINGS, Wiring
from .folders import CONFIG_FILE, FORMAT_VERSION, MODEL_FORMAT, WEIGHTS_FILE, check_format, model_folder, read_json

__all__ = ["decode_argument", "encode_argument", "load", "save"]

TREES_IN_WEIGHTS = "weights"
"""`trees` of a model whose trees are not those that its arguments grow, and are read from the weights' file."""


def save(model: nn.Module, folder: str | os.PathLike[str]) -> None:
    """Write a registered model to a folder, which `load` reads back.

    An existing model folder is replaced; any other existing path is refused.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4)
    >>> folder = Path(tempfile.mkdtemp()) / "net"
    >>> save(net, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.json', 'weights.safetensors']
    """
    import_extra("safetensors.torch", extra="save")
    config = model_config(model)
    with model_folder(folder) as fresh:
        write_files(fresh, config, model.state_dict())


def model_config(model: nn.Module) -> dict[str, Any]:
    """What `build_model` needs besides the state dict, ready for JSON."""
    name, arguments = model_origin(model)
    config = {
        "format": MODEL_FORMAT,
        "version": FORMAT_VERSION,
        "model": name,
        "arguments": {key: encode_argument(key, value) for key, value in arguments.items()},
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
    }
    if any(layer.regrown for _, layer in _dendritic_layers(model)):
        config["trees"] = TREES_IN_WEIGHTS
    try:
        json.dumps(config, allow_nan=False)
    except ValueError:
        raise OptionError(f"arguments must be finite to be saved: got {arguments!r}") from None
    return config


def write_files(folder: Path, config: Mapping[str, Any], state: Mapping[str, Tensor]) -> None:
    """Write a config and tensors into a folder that is there."""
    safetensors = import_extra("safetensors.torch", extra="save")
    whole = {key: value.detach().cpu().clone(memory_format=torch.contiguous_format) for key, value in state.items()}
    safetensors.save_file(whole, folder / WEIGHTS_FILE)
    text = json.dumps(config, indent=2, allow_nan=False) + "\n"
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
    (folder / WEIGHTS_FILE).chmod((folder / CONFIG_FILE).stat().st_mode)  # safetensors writes for the owner alone


def load(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> nn.Module:
    """Read a model that `save` wrote, in evaluation mode. Torch's random state is left as it was.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4).eval()
    >>> save(net, folder := Path(tempfile.mkdtemp()) / "net")
    >>> bool((load(folder)(torch.ones(2, 16)) == net(torch.ones(2, 16))).all())
    True
    """
    import_extra("safetensors.torch", extra="save")
    config = check_config(read_json(Path(folder), CONFIG_FILE), Path(folder) / CONFIG_FILE)
    model = build_model(config, folder)
    load_state(model, read_tensors(folder), folder, config)
    return model.to(device).eval()


def _dendritic_layers(model: nn.Module) -> Iterator[tuple[str, DendriticLayer]]:
    """The dendritic layers of a model, each with the prefix of its entries in the state dict."""
    for name, module in model.named_modules():
        if isinstance(module, DendriticLayer):
            yield f"{name}." if name else "", module


def _regrow(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give a model the trees of a state dict."""
    with torch.random.fork_rng(devices=[]):
        for prefix, layer in _dendritic_layers(model):
            entries = {key: state[prefix + key] for key in FOREST_KEYS}
            forest, image = read_forest(entries), layer.wiring.image(layer.in_features)
            windows = None
            if image is not None and prefix + WINDOWS_KEY in state:
                windows = read_windows({WINDOWS_KEY: state[prefix + WINDOWS_KEY]}, forest, image)
            layer.regrow(forest, bias=f"{prefix}bias" in state, windows=windows)


def read_tensors(folder: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a model folder."""
    safetensors = import_extra("safetensors.torch", extra="save")
    weights = Path(folder) / WEIGHTS_FILE
    if not weights.is_file():
        raise FormatError(f"a model folder must hold {WEIGHTS_FILE}: none in {folder}")
    try:
        tensors: dict[str, Tensor] = safetensors.load_file(weights)
    except import_extra("safetensors", extra="save").SafetensorError as error:
        raise FormatError(f"{weights} does not hold the weights that {CONFIG_FILE} describes: {error}") from error
    return tensors


def build_model(config: Mapping[str, Any], folder: str | os.PathLike[str]) -> nn.Module:
    """The model that a checked config describes, with weights of its own."""
    dtype = getattr(torch, config["dtype"], None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise FormatError(f"dtype in {CONFIG_FILE} must name a floating-point type of torch: got {config['dtype']!r}")
    with torch.random.fork_rng(devices=[]):
        try:
            arguments = {key: decode_argument(value) for key, value in config["arguments"].items()}
            return create_model(config["model"], **arguments).to(dtype)
        except (TypeError, DendritreeError) as error:
            raise FormatError(f"{CONFIG_FILE} in {folder} does not describe a model: {error}") from None


def load_state(
    model: nn.Module, state: Mapping[str, Tensor], folder: str | os.PathLike[str], config: Mapping[str, Any]
) -> None:
    """Give a model the weights that a folder holds, and the trees where they are not those of its config."""
    try:
        if config.get("trees") == TREES_IN_WEIGHTS:
            _regrow(model, state)
        model.load_state_dict(state)
    except (RuntimeError, KeyError, DendritreeError) as error:
        path = Path(folder) / WEIGHTS_FILE
        raise FormatError(f"{path} does not hold the weights that {CONFIG_FILE} describes: {error}") from error


def check_config(config: Any, path: Path) -> dict[str, Any]:
    """A model's config, if it is one of this version."""
    check_format(config, path, MODEL_FORMAT)
    kind: type
    for key, kind in (("model", str), ("arguments", dict), ("dtype", str)):
        if not isinstance(config.get(key), kind):
            raise FormatError(f"{key} in {path} must be a {kind.__name__}: got {config.get(key)!r}")
    return dict(config)


def encode_argument(key: str, value: Any) -> Any:
    """An argument as JSON: plain values, lists and mappings of them, wirings, and activations of `torch.nn`.

    >>> encode_argument("activation", nn.LeakyReLU)
    {'torch.nn': 'LeakyReLU'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encode_argument(key, item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": {str(k): encode_argument(key, v) for k, v in value.items()}}
    if isinstance(value, Wiring):
        return {"wiring": value.name, **{k: encode_argument(key, v) for k, v in dataclasses.asdict(value).items()}}
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, nn.Module) and getattr(nn, kind.__name__, None) is kind:
        if kind is value:
            return {"torch.nn": kind.__name__}
        # Torch's activations name their constructor's arguments in __constants__, mostly; the repr tells.
        constants = {name: getattr(value, name) for name in getattr(kind, "__constants__", ())}
        for encoded in ({"torch.nn": kind.__name__, **constants}, {"torch.nn": kind.__name__}):
            with contextlib.suppress(TypeError):
                if repr(decode_argument(encoded)) == repr(value):
                    return encoded
    raise OptionError(f"{key} must be a plain value, a wiring or a module of torch.nn to be saved: got {value!r}")


def decode_argument(value: Any) -> Any:
    """The argument that `encode_argument` made JSON of.

    >>> decode_argument({"torch.nn": "LeakyReLU"})
    LeakyReLU(negative_slope=0.01)
    """
    if isinstance(value, list):
        return [decode_argument(item) for item in value]
    if isinstance(value, dict) and isinstance(value.get("mapping"), dict):
        return {key: decode_argument(item) for key, item in value["mapping"].items()}
    if isinstance(value, dict):
        options = {key: decode_argument(item) for key, item in value.items() if key not in ("torch.nn", "wiring")}
        if isinstance(value.get("wiring"), str) and value["wiring"] in WIRINGS:
            return WIRINGS[value["wiring"]](**options)
        module = getattr(nn, str(value.get("torch.nn")), None)
        if isinstance(module, type) and issubclass(module, nn.Module):
            return module(**options)
        raise FormatError(f"an argument in {CONFIG_FILE} must be a known wiring or a module of torch.nn: got {value!r}")
    return value
