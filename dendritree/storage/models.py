"""Descriptions of registered models and layers: what is needed to rebuild one, as JSON values, and the state dict.

For a registered model that is its name, arguments and dtype; for a layer its class, arguments and dtype. Supported are
the layers of this library, common layers of `torch.nn`, registered models, and `nn.Sequential`s of all these. A file
can name only these layers, and neurons that an installed package provides (an entry point of `dendritree.neurons`),
which imports that package; no other module is imported by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import layers, neurons
from ..errors import DendritreeError, FormatError, OptionError
from ..layers.forest_layer import ForestLayer
from ..layers.linear import BatchNorm, Dropout, Linear
from ..layers.neuron_layer import NeuronLayer
from ..layers.state import WINDOWS_KEY, read_forest, read_windows
from ..models.registry import create_model, model_origin
from ..neurons import KTree
from ..tree.levels import check_shape
from ..wiring import WIRINGS, Wiring
from .folders import CONFIG_FILE, VERSION, Description, entry
from .sizes import check_sizes

TREES_IN_WEIGHTS = "weights"
"""Value of `trees` for a model whose trees differ from those its arguments grow, such as after pruning: the weights
file contains them."""

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float32", "float64")}
"""The dtypes that weights may have."""
PLACEMENT = ("device", "dtype")
"""Arguments that a file may not set: the caller of `load` selects the device, and `dtype` in the config the dtype."""

TORCH_MODULES = {
    name: kind for name, kind in vars(nn).items() if isinstance(kind, type) and issubclass(kind, nn.Module)
}
OURS: dict[str, type[nn.Module]] = {kind.__name__: kind for kind in (Linear, BatchNorm, Dropout)} | {
    name: kind
    for package in (layers, neurons)
    for name in package.__all__
    if isinstance(kind := getattr(package, name), type) and issubclass(kind, NeuronLayer)
}
"""Layers of this library: all of `dendritree.layers` and `dendritree.neurons`, and those that their networks use."""
HOMES = ("activation", "batchnorm", "conv", "dropout", "flatten", "linear", "normalization", "pooling", "sparse")
THEIRS: dict[str, type[nn.Module]] = {
    name: kind
    for name, kind in TORCH_MODULES.items()
    if kind.__module__.removeprefix("torch.nn.modules.") in HOMES
    and not issubclass(kind, nn.MultiheadAttention | nn.modules.lazy.LazyModuleMixin)
}
"""Layers of `torch.nn` that take one tensor."""
FAMILIES = {"dendritree": OURS, "torch.nn": THEIRS}
GROWN = ("branching", "repeats", "ragged", "wiring")
"""The arguments a layer was grown with; it keeps these when its trees are replaced."""


def describe_model(model: nn.Module) -> Description:
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


def rebuild_model(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None
) -> nn.Module:
    """The model of a description, in evaluation mode."""
    name, dtype = entry(config, "model", str), float_type(entry(config, "dtype", str))
    arguments = decode_arguments(entry(config, "arguments", dict))
    check_sizes(arguments, tensors)
    model = create_model(name, **arguments).to(dtype)
    try:
        if config.get("trees") == TREES_IN_WEIGHTS:
            for prefix, layer in _dendritic_layers(model):
                regrow_layer(layer, tensors, prefix)
        model.load_state_dict(tensors)
    except (RuntimeError, KeyError, DendritreeError) as error:
        raise FormatError(f"the weights are not those that {CONFIG_FILE} describes: {error}") from error
    return model.to(device).eval()


def _dendritic_layers(model: nn.Module) -> Iterator[tuple[str, ForestLayer]]:
    """The dendritic layers of a model, each with the prefix of its entries in the state dict."""
    for name, module in model.named_modules():
        if isinstance(module, ForestLayer):
            yield f"{name}." if name else "", module


def regrow_layer(layer: ForestLayer, state: Mapping[str, Tensor], prefix: str) -> None:
    """Replace the trees of a layer by those in a state dict."""
    entries = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    forest, image = read_forest(entries), layer.wiring.image(layer.forest.in_features)
    windows = read_windows(entries, forest, image) if image is not None and WINDOWS_KEY in entries else None
    layer.regrow(forest, bias=f"{prefix}bias" in state, windows=windows)


def float_type(name: Any) -> torch.dtype:
    """The floating-point dtype of torch that a file names.

    >>> float_type("float64")
    torch.float64
    """
    if not isinstance(name, str) or name not in DTYPES:
        raise FormatError(f"dtype in {CONFIG_FILE} must name a floating-point type of torch: got {name!r}")
    return DTYPES[name]


def encode_argument(key: str, value: Any) -> Any:
    """An argument as JSON: plain values, lists and mappings of these, wirings, and activations of `torch.nn`.

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
        # Most of torch's activations list their constructor's arguments in __constants__; the repr shows if they do.
        constants = {name: getattr(value, name) for name in getattr(kind, "__constants__", ())}
        for encoded in ({"torch.nn": kind.__name__, **constants}, {"torch.nn": kind.__name__}):
            with contextlib.suppress(TypeError):
                if repr(decode_argument(encoded)) == repr(value):
                    return encoded
    raise OptionError(f"{key} must be a plain value, a wiring or a module of torch.nn to be saved: got {value!r}")


def decode_argument(value: Any) -> Any:
    """The inverse of `encode_argument`.

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
    """Decode the named arguments in a file."""
    for key in PLACEMENT:
        if key in arguments:
            raise FormatError(f"an argument in {CONFIG_FILE} must not be {' or '.join(PLACEMENT)}: got {key}")
    return {key: decode_argument(item) for key, item in arguments.items()}


# ---------------------------------------------------------------------------------------------------------- layers


def describe_layer(module: nn.Module) -> dict[str, Any]:
    """The description of a layer, or of an `nn.Sequential` of layers; raises `OptionError` for any other module.

    >>> describe_layer(nn.Sequential(nn.Flatten()))["modules"]
    {'0': {'torch.nn': 'Flatten', 'arguments': {'start_dim': 1, 'end_dim': -1}}}
    """
    name = type(module).__name__
    if "forward" in vars(module) or module._forward_hooks or module._forward_pre_hooks:
        raise OptionError(f"{name} has forward hooks, or its own forward, which a file does not store")
    if "model_name" in vars(module):
        return describe_model(module)[0]
    if type(module) is nn.Sequential:
        parts = module.named_modules(remove_duplicate=False)
        layers = {child: describe_layer(part) for child, part in parts if child and "." not in child}
        return {"torch.nn": "Sequential", "modules": layers}
    family = next((family for family, known in FAMILIES.items() if known.get(name) is type(module)), None)
    if family is None:
        raise OptionError(f"{name} is not a layer that a file can describe")
    node: dict[str, Any] = {family: name}
    if isinstance(module, ForestLayer) and module.regrown:
        node["trees"] = TREES_IN_WEIGHTS
        node["grown"] = {key: encode_argument(key, getattr(module, key)) for key in GROWN}
    node["arguments"] = {key: encode_argument(key, value) for key, value in _arguments(module).items()}
    parameter = next(module.parameters(), None)
    if parameter is not None:
        node["dtype"] = str(parameter.dtype).removeprefix("torch.")
    _check(module, node)
    return node


def _arguments(module: nn.Module) -> dict[str, Any]:
    """The arguments that build a layer: sizes and options of our layers, attributes named like parameters of others."""
    if isinstance(module, NeuronLayer):
        options = {**{name: getattr(module, name) for name in module.SIZES}, **module._options()}
        for trees in (module, getattr(module, "trees", None)):  # of a layer, or in one such as DANN
            if isinstance(trees, ForestLayer):
                options |= {"activation": trees.activation, "backend": trees.backend}
        if isinstance(module, ForestLayer) and not isinstance(module, KTree) and module.regrown:
            # the smallest possible layer, to be regrown
            options |= {"fan_in": 1, "wiring": "random", "root_activation": module.root_activation}
        return options
    names = [name for name in inspect.signature(type(module)).parameters if name not in PLACEMENT]
    arguments = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return {name: value is not None if name == "bias" else value for name, value in arguments.items()}


def _check(module: nn.Module, node: dict[str, Any]) -> None:
    """Raise for a layer whose description builds a different one because it was changed after it was built."""
    state = module.state_dict()
    try:
        with torch.random.fork_rng(devices=[]):
            twin = build_layer(node, state)
        twin.load_state_dict(state)
    except (DendritreeError, TypeError, ValueError, RuntimeError) as error:
        raise OptionError(f"{type(module).__name__} cannot be built from its own attributes: {error}") from error
    ours, theirs = ({k: (v.dtype, v.shape) for k, v in each.items()} for each in (state, twin.state_dict()))
    if repr(twin) != repr(module) or ours != theirs:
        raise OptionError(f"{type(module).__name__} is not what its arguments build: it was changed afterwards")


def build_layer(node: Any, state: Mapping[str, Tensor], prefix: str = "") -> nn.Module:
    """The layer of a description; its trees come from the state dict if they are not those it was grown with.

    >>> build_layer({"torch.nn": "Linear", "arguments": {"in_features": 3, "out_features": 2}}, {})
    Linear(in_features=3, out_features=2, bias=True)
    """
    match node:
        case {"torch.nn": "Sequential", "modules": dict() as parts}:
            built = {name: build_layer(part, state, f"{prefix}{name}.") for name, part in parts.items()}
            return nn.Sequential(OrderedDict(built))
        case {"model": str()}:
            own = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
            return rebuild_model({"version": VERSION, **node}, own, None)
        case {"dendritree": str() as name, "arguments": dict() as given} if name in OURS:
            kind = OURS[name]
        case {"torch.nn": str() as name, "arguments": dict() as given} if name in THEIRS:
            kind = THEIRS[name]
        case _:
            raise FormatError(f"a layer in {CONFIG_FILE} must be one of this library or of torch.nn: got {node!r:.80}")
    decoded = decode_arguments(given)
    check_sizes(decoded, state)
    if kind in THEIRS.values():  # torch's layers expect tuples
        decoded = {key: tuple(value) if isinstance(value, list) else value for key, value in decoded.items()}
    layer = kind(**decoded)
    if isinstance(layer, ForestLayer) and node.get("trees") == TREES_IN_WEIGHTS:
        for key in GROWN:
            setattr(layer, key, decode_argument(node["grown"][key]))
        layer.branching = check_shape(layer.branching)
        regrow_layer(layer, state, prefix)
    return layer.to(float_type(node["dtype"])) if "dtype" in node else layer
