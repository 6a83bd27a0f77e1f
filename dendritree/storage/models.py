"""Registered models as descriptions: a name, arguments and a dtype, and the state dict."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import DendritreeError, FormatError, OptionError
from ..layers.forest import ForestLayer
from ..layers.state import FOREST_KEYS, WINDOWS_KEY, read_forest, read_windows
from ..models.registry import create_model, model_entry, model_origin
from ..wiring import WIRINGS, Wiring
from .folders import CONFIG_FILE, WEIGHTS_FILE, Description, entry

TREES_IN_WEIGHTS = "weights"
"""`trees` of a model whose trees are not those that its arguments grow (it was pruned): the weights' file has them."""

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float32", "float64")}
"""Types of weights that a model computes with."""
PLACEMENT = ("device", "dtype")
"""Arguments that a file may not set: whoever opens it says where a model goes, and `dtype` of the config its type."""

TORCH_MODULES = {
    name: kind for name, kind in vars(nn).items() if isinstance(kind, type) and issubclass(kind, nn.Module)
}


def describe(model: nn.Module) -> Description:
    """The name, arguments and dtype of a registered model, and its state dict."""
    name, arguments = model_origin(model)
    config = {
        "model": name,
        "arguments": {key: encode_argument(key, value) for key, value in arguments.items()},
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
    }
    if any(layer.regrown for _, layer in _dendritic_layers(model)):
        config["trees"] = TREES_IN_WEIGHTS
    return config, model.state_dict()


def rebuild(config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None) -> nn.Module:
    """The model of a description, in evaluation mode."""
    name, dtype = entry(config, "model", str), float_type(entry(config, "dtype", str))
    arguments = decode_arguments(entry(config, "arguments", dict))
    if config["version"] == 1 and "output" in model_entry(name).arguments:
        arguments.setdefault("output", "probabilities")
    model = create_model(name, **arguments).to(dtype)
    try:
        if config.get("trees") == TREES_IN_WEIGHTS:
            _regrow(model, tensors)
        model.load_state_dict(tensors)
    except (RuntimeError, KeyError, DendritreeError) as error:
        raise FormatError(f"{WEIGHTS_FILE} does not hold the weights that {CONFIG_FILE} describes: {error}") from error
    return model.to(device).eval()


def _dendritic_layers(model: nn.Module) -> Iterator[tuple[str, ForestLayer]]:
    """The dendritic layers of a model, each with the prefix of its entries in the state dict."""
    for name, module in model.named_modules():
        if isinstance(module, ForestLayer):
            yield f"{name}." if name else "", module


def _regrow(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give a model the trees of a state dict."""
    for prefix, layer in _dendritic_layers(model):
        regrow_layer(layer, state, prefix)


def regrow_layer(layer: ForestLayer, state: Mapping[str, Tensor], prefix: str) -> None:
    """Give a layer the trees that a state dict has for it."""
    entries = {key: state[prefix + key] for key in FOREST_KEYS}
    forest, image = read_forest(entries), layer.wiring.image(layer.forest.in_features)
    windows = None
    if image is not None and prefix + WINDOWS_KEY in state:
        windows = read_windows({WINDOWS_KEY: state[prefix + WINDOWS_KEY]}, forest, image)
    layer.regrow(forest, bias=f"{prefix}bias" in state, windows=windows)


def float_type(name: Any) -> torch.dtype:
    """The floating-point type of torch that a file names.

    >>> float_type("float64")
    torch.float64
    """
    if not isinstance(name, str) or name not in DTYPES:
        raise FormatError(f"dtype in {CONFIG_FILE} must name a floating-point type of torch: got {name!r}")
    return DTYPES[name]


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
    if TORCH_MODULES.get(kind.__name__) is kind:
        if kind is value:
            return {"torch.nn": kind.__name__}
        # Torch's activations name their constructor's arguments in __constants__, mostly; the repr says whether.
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
    build: Callable[..., Any]
    match value:
        case list():
            return [decode_argument(item) for item in value]
        case {"mapping": dict() as items}:
            return decode_arguments(items)
        case {"wiring": str() as name, **options} if name in WIRINGS:
            build = WIRINGS[name]
        case {"torch.nn": str() as name, **options} if name in TORCH_MODULES:
            build = TORCH_MODULES[name]
        case dict():
            rule = f"an argument in {CONFIG_FILE} must be a known wiring or a module of torch.nn"
            raise FormatError(f"{rule}: got {value!r}")
        case _:
            return value
    return build(**decode_arguments(options))


def decode_arguments(arguments: Mapping[Any, Any]) -> dict[str, Any]:
    """Named arguments of a file."""
    for key in PLACEMENT:
        if key in arguments:
            raise FormatError(f"an argument in {CONFIG_FILE} must not be {' or '.join(PLACEMENT)}: got {key}")
    return {key: decode_argument(item) for key, item in arguments.items()}
