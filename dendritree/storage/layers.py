"""Layers as descriptions: what builds one again is its class, its arguments and its type, as plain JSON values.

Known are the layers of this library, the plain ones of `torch.nn`, registered models, and `nn.Sequential`s of all
these. A file names a layer among these and nothing else: nothing is imported by name.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import DendritreeError, FormatError, OptionError
from ..layers import DANN, DENN, DMNN, DNM, DendriticConv1d, DendriticConv2d, DendriticLayer, KTree
from ..layers.base import NeuronLayer
from ..layers.forest import ForestLayer
from ..layers.linear import BatchNorm, Dropout, Linear
from ..levels import check_shape
from .folders import CONFIG_FILE, VERSION
from .models import (
    PLACEMENT,
    TORCH_MODULES,
    TREES_IN_WEIGHTS,
    decode_argument,
    decode_arguments,
    encode_argument,
    float_type,
    regrow_layer,
)
from .models import describe as describe_model
from .models import rebuild as rebuild_model

OURS: dict[str, type[nn.Module]] = {
    "DendriticLayer": DendriticLayer, "DendriticConv1d": DendriticConv1d, "DendriticConv2d": DendriticConv2d,
    "KTree": KTree, "DENN": DENN, "DNM": DNM, "DMNN": DMNN, "DANN": DANN,
    "Linear": Linear, "BatchNorm": BatchNorm, "Dropout": Dropout,
}  # fmt: skip
HOMES = ("activation", "batchnorm", "conv", "dropout", "flatten", "linear", "normalization", "pooling", "sparse")
THEIRS: dict[str, type[nn.Module]] = {
    name: kind
    for name, kind in TORCH_MODULES.items()
    if kind.__module__.removeprefix("torch.nn.modules.") in HOMES
    and not issubclass(kind, nn.MultiheadAttention | nn.modules.lazy.LazyModuleMixin)
}
"""Layers of `torch.nn` that take one tensor."""
FAMILIES = {"dendritree": OURS, "torch.nn": THEIRS}
SEQUENTIAL = {"torch.nn": "Sequential"}
GROWN = ("branching", "repeats", "ragged")
"""What a layer was grown with; it keeps these when its trees are replaced."""


def describe_layer(module: nn.Module) -> dict[str, Any]:
    """The description of a layer, or of an `nn.Sequential` of layers; `OptionError` says what has none.

    >>> describe_layer(nn.Sequential(nn.Flatten()))["modules"]
    {'0': {'torch.nn': 'Flatten', 'arguments': {'start_dim': 1, 'end_dim': -1}}}
    """
    name = type(module).__name__
    if "forward" in vars(module) or module._forward_hooks or module._forward_pre_hooks:
        raise OptionError(f"{name} has forward hooks, or a forward of its own, which a file does not keep")
    if "model_name" in vars(module):
        return describe_model(module)[0]
    if type(module) is nn.Sequential:
        return SEQUENTIAL | {
            "modules": {child: describe_layer(part) for child, part in module._modules.items() if part is not None}
        }
    family = next((family for family, known in FAMILIES.items() if known.get(name) is type(module)), None)
    if family is None:
        raise OptionError(f"{name} is not a layer that a file can describe")
    node: dict[str, Any] = {family: name}
    if isinstance(module, ForestLayer) and module.regrown:
        node["trees"] = TREES_IN_WEIGHTS
        node["grown"] = {key: encode_argument(key, getattr(module, key)) for key in GROWN}
        node["grown"]["wirings"] = encode_argument("wiring", module.wirings)
    node["arguments"] = {key: encode_argument(key, value) for key, value in _arguments(module).items()}
    parameter = next(module.parameters(), None)
    if parameter is not None:
        node["dtype"] = str(parameter.dtype).removeprefix("torch.")
    _check(module, node)
    return node


def _arguments(module: nn.Module) -> dict[str, Any]:
    """The arguments that build a layer: as it shows them if it is ours, as its attributes are called otherwise."""
    if isinstance(module, NeuronLayer):
        options = {**{name: getattr(module, name) for name in module.SIZES}, **module._options()}
        trees = module.trees if isinstance(module, DANN) else module
        if isinstance(trees, ForestLayer):
            options |= {"activation": trees.activation, "backend": trees.backend}
        if (
            isinstance(module, ForestLayer) and not isinstance(module, KTree) and module.regrown
        ):  # the least layer there is, to be regrown
            options |= {"fan_in": 1, "wiring": "random", "root_activation": module.root_activation}
        return options
    names = [name for name in inspect.signature(type(module)).parameters if name not in PLACEMENT]
    found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return {name: value is not None if name in module._parameters else value for name, value in found.items()}


def _check(module: nn.Module, node: dict[str, Any]) -> None:
    """Raise for a layer whose description builds another one: it was changed after it was built."""
    state = module.state_dict()
    try:
        with torch.random.fork_rng(devices=[]):
            twin = build_layer(node, state)
        twin.load_state_dict(state)
    except (DendritreeError, TypeError, ValueError, RuntimeError) as error:
        raise OptionError(f"{type(module).__name__} cannot be built from its own attributes: {error}") from error
    if repr(twin) != repr(module) or _kinds(twin.state_dict()) != _kinds(state):
        raise OptionError(f"{type(module).__name__} is not what its arguments build: it was changed afterwards")


def _kinds(state: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {key: (value.shape, value.dtype) for key, value in state.items()}


def build_layer(node: Any, state: Mapping[str, Tensor], prefix: str = "") -> nn.Module:
    """The layer of a description; its trees are those of a state dict if they are not the ones it was grown with.

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
    if kind in THEIRS.values():  # torch's layers keep tuples
        decoded = {key: tuple(value) if isinstance(value, list) else value for key, value in decoded.items()}
    layer = kind(**decoded)
    if isinstance(layer, ForestLayer) and node.get("trees") == TREES_IN_WEIGHTS:
        _regrow(layer, node["grown"], state, prefix)
    return layer.to(float_type(node["dtype"])) if "dtype" in node else layer


def _regrow(layer: ForestLayer, grown: Mapping[str, Any], state: Mapping[str, Tensor], prefix: str) -> None:
    for key in GROWN:
        setattr(layer, key, decode_argument(grown[key]))
    layer.branching = check_shape(layer.branching)
    layer.wirings = tuple(decode_argument(grown["wirings"]))
    regrow_layer(layer, state, prefix)
