"""Descriptions of networks: a registered model, a description of layers, or the parts of a custom model.

A model of an unknown class is described by its *parts*: the layers of this library in it, by name, and the state dict
of the whole model. `fill` puts them into a model of that class in place of its own modules, for example the trees of a
conversion in place of the original's perceptrons.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..conversion.perceptrons import is_perceptron
from ..conversion.replacement import put_in
from ..errors import DendritreeError, FormatError, OptionError
from ..layers.linear import Linear
from ..layers.neuron_layer import NeuronLayer
from .folders import Description
from .models import build_layer, describe_layer, describe_model, rebuild_model


def describe(model: Any) -> Description:
    """The description from which `rebuild` or `fill` makes the model."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"save takes an nn.Module or a fitted estimator of this library: got {type(model).__name__}")
    state = model.state_dict()
    odd = [key for key, value in state.items() if not isinstance(value, Tensor)]
    if odd:
        raise OptionError(f"a model to be saved must have a state dict of tensors: {odd[0]} is {state[odd[0]]!r:.60}")
    try:
        if "model_name" in vars(model):
            return describe_model(model)
        _check_not_shared(model)
        return {"layers": describe_layer(model)}, state
    except OptionError as error:
        why = str(error)
    if not any(isinstance(module, NeuronLayer) for module in model.modules()):
        raise OptionError(
            f"a model to be saved must hold layers of this library, or be made of known layers of torch.nn: {why}; for "
            "any other, use safetensors.torch.save_model"
        )
    return {"class": type(model).__name__, "why": why, "parts": dict(_parts(model))}, state


def _check_not_shared(model: nn.Module) -> None:
    """Raise for a model that uses a layer with weights twice: a description would create two layers."""
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    once = {name for name, _ in model.named_parameters()}
    shared = next((name for name in names if name not in once), None)
    if shared is not None:
        raise OptionError(f"{type(model).__name__} uses a layer twice ({shared})")


def _parts(module: nn.Module, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The outermost modules of this library in a model that can be described, by name."""
    if "model_name" in vars(module) or isinstance(module, NeuronLayer | Linear):
        try:
            yield name, describe_layer(module)
            return
        except OptionError:  # the model to be filled must already have it
            pass
    for child, part in module.named_children():
        yield from _parts(part, f"{name}.{child}".lstrip("."))


def rebuild(config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None) -> nn.Module:
    """The network of a description, in evaluation mode."""
    if "parts" in config:
        raise FormatError(
            f"{config.get('class')!s:.60} must be built by your own code and filled in: load(folder, into=model); "
            f"a file cannot build it ({config.get('why')!s:.200})"
        )
    if "layers" not in config:
        return rebuild_model(config, tensors, device)
    network = build_layer(config["layers"], tensors)
    _load(network, tensors)
    return network.to(device).eval()


def fill(
    model: nn.Module, config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None
) -> nn.Module:
    """Give a model the layers and weights of a description, in place; after an error it is unchanged."""
    parts = config["parts"] if "parts" in config else dict(_parts(rebuild(config, tensors, None)))
    for each in (copy.deepcopy(model), model):  # what does not fit the copy raises before the model changes
        layers = {}
        for name, node in parts.items():
            part = _part(each, name, node)
            if not _describes(node, part):
                place = next(iter((*part.parameters(), *each.parameters())), torch.empty(0)).device
                layers[name] = build_layer(node, _below(name, tensors)).to(place)
        put_in(each, layers)
        _load(each, tensors)
    return model.to(device).eval()


def _part(model: nn.Module, name: str, node: Mapping[str, Any]) -> nn.Module:
    """The module that a part replaces."""
    try:
        part = model.get_submodule(name)
    except AttributeError:
        raise FormatError(
            f"the model to be filled must have a module {name!r}: {type(model).__name__} has none"
        ) from None
    kind = node.get("dendritree") or node.get("model")
    if name and (is_perceptron(part, convolutions=True) or isinstance(part, NeuronLayer) or "model_name" in vars(part)):
        return part
    if not name and _describes(node, part):  # the model itself cannot be replaced
        return part
    raise FormatError(
        f"{name or 'the model'} must be the {kind} that was saved, a perceptron or a convolution: got {part!r:.120}"
    )


def _describes(node: Mapping[str, Any], module: nn.Module) -> bool:
    try:
        return describe_layer(module) == node
    except OptionError:
        return False


def _below(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The entries of a state dict that belong to a module."""
    prefix = f"{name}." if name else ""
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _load(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    try:
        module.load_state_dict(dict(tensors))
    except (RuntimeError, KeyError, DendritreeError) as error:
        reason = " ".join(str(error).split())  # torch lists every key, which can be thousands of characters
        raise FormatError(f"the weights are not those of {type(module).__name__}: {reason:.160}") from None
