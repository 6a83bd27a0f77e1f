"""Models by name, and the arguments each was built with, so that it can be built again from a file."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from torch import nn

from ..errors import OptionError, ShapeError, check_one_of
from ..neurons.families import PLACEMENT, RESERVED, neuron_family, neuron_names

Builder = TypeVar("Builder", bound=Callable[..., nn.Module])


@dataclass(frozen=True)
class ModelEntry:
    """A registered model."""

    name: str
    build: Callable[..., nn.Module]
    """The class; or a function that returns a model of a registered class."""
    example: Mapping[str, Any]
    """Arguments that build a small one, for tests and documentation."""
    summary: str
    """One line that says what it is."""

    @functools.cached_property
    def arguments(self) -> dict[str, bool]:
        """Names of the arguments it takes, and whether each is required."""
        parameters = inspect.signature(self.build).parameters.values()
        arguments = {p.name: p.default is p.empty for p in parameters if p.kind is not p.VAR_KEYWORD}
        for p in parameters:
            if p.kind is p.VAR_KEYWORD:  # **options: Unpack[SomeTypedDict]
                (options,) = get_args(get_type_hints(self.build.__init__)[p.name])
                arguments.update(dict.fromkeys(options.__annotations__, False))
        return arguments


_ENTRIES: dict[str, ModelEntry] = {}


def register(name: str, *, example: Mapping[str, Any]) -> Callable[[Builder], Builder]:
    """Decorator: register by `name` a class of models, or a function that builds a model of a registered class.

    Every instance of a registered class gets `model_name` and `model_arguments` (without device and dtype), from which
    it can be built again, even if a function that builds it changes. A subclass that is not registered itself gets
    neither, because the arguments could not rebuild it.
    """

    def decorate(build: Builder) -> Builder:
        if name in _ENTRIES:
            raise OptionError(f"a model name must be new: {name!r} is already {_ENTRIES[name].build.__name__}")
        _ENTRIES[name] = ModelEntry(name, build, dict(example), (inspect.getdoc(build) or "").partition("\n")[0])
        RESERVED.add(name)
        if isinstance(build, type):
            _store_arguments(build, name)
        return build

    return decorate


def _store_arguments(cls: type[nn.Module], name: str) -> None:
    """Make the constructor of a class store its arguments in each instance."""
    plain_init: Callable[..., None] = cls.__init__
    signature = inspect.signature(plain_init)

    @functools.wraps(plain_init)
    def init(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        plain_init(self, *args, **kwargs)
        if type(self) is cls:
            arguments = dict(signature.bind(self, *args, **kwargs).arguments)
            arguments.pop("self")
            for parameter in signature.parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    arguments.update(arguments.pop(parameter.name, {}))
            kept = {
                key: list(value) if isinstance(value, list) else value  # a copy: the caller may change it
                for key, value in arguments.items()
                if key not in PLACEMENT
            }
            self.__dict__.update(model_name=name, model_arguments=kept)

    cls.__init__ = init  # type: ignore[method-assign]


def model_entry(name: str) -> ModelEntry:
    """The entry of a registered model; an unknown name raises an error that lists the known ones.

    The name of a neuron stands for a `NeuronNetwork` of such neurons.

    >>> model_entry("mln").build.__name__, model_entry("denn").example["options"]
    ('MLNClassifier', {'branches': 2})
    """
    if name in _ENTRIES:
        return _ENTRIES[name]
    family, network = neuron_family(check_one_of("model", name, list_models())), _ENTRIES["neuron-network"]
    example = {**network.example, "neuron": name, "options": family.example}
    return ModelEntry(name, functools.partial(network.build, neuron=name), example, family.title)


def model_origin(model: nn.Module) -> tuple[str, dict[str, Any]]:
    """The name and arguments a registered model was built with.

    >>> model_origin(create_model("mlp", in_features=4, hidden=3))
    ('mlp', {'in_features': 4, 'hidden': 3})
    """
    try:
        return vars(model)["model_name"], vars(model)["model_arguments"]
    except KeyError:
        raise OptionError(f"the model must be one of {', '.join(list_models())}: got {type(model).__name__}") from None


def create_model(name: str, data: Any = None, **arguments: Any) -> nn.Module:
    """Build a registered model.

    Args:
        name: one of `list_models()`.
        data: examples, as a pair (x, y) or a split, from which `in_features`, `image_shape` and `out_features` are
            inferred unless given. Images are (n, channels, height, width) or (n, height, width).
        arguments: arguments of the model.

    Example:
        >>> net = create_model("mln", in_features=1024, out_features=10, branching=32)
        >>> sum(p.numel() for p in net.parameters())
        10890
        >>> import torch
        >>> images, labels = torch.rand(50, 28, 28), torch.arange(50) % 10
        >>> create_model("dendritic", (images, labels), budget=2000)(images).shape
        torch.Size([50, 10])
    """
    entry = model_entry(name)
    if data is not None:
        arguments = {key: size for key, size in _sizes_of(data).items() if key in entry.arguments} | arguments
    for key in arguments:
        check_one_of(f"an argument of model {name!r}", key, entry.arguments)
    missing = [key for key, required in entry.arguments.items() if required and key not in arguments]
    if missing:
        raise OptionError(f"model {name!r} needs {', '.join(missing)}: got {', '.join(arguments) or 'nothing'}")
    return entry.build(**arguments)


def _sizes_of(data: Any) -> dict[str, Any]:
    """The sizes that examples imply for a model: inputs, the shape of images, and an output per class or number.

    >>> import numpy as np
    >>> _sizes_of((np.zeros((9, 3, 8, 8)), np.arange(9) % 4))
    {'in_features': 192, 'out_features': 4, 'image_shape': (3, 8, 8)}
    """
    examples = getattr(data, "train", data)
    pair = (examples.x, examples.y) if hasattr(examples, "x") else examples
    if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(hasattr(part, "shape") for part in pair)):
        raise OptionError(f"data must be a pair (x, y) of arrays or tensors, or a split: got {type(data).__name__}")
    (_, *shape), y = pair[0].shape, pair[1]
    if len(shape) == 3 and shape[0] > shape[2]:
        raise ShapeError(f"images must have their channels first, (n, channels, height, width): got {pair[0].shape}")
    is_number = "float" in str(y.dtype)
    outputs = math.prod(y.shape[1:]) if is_number else int(y.max()) + 1
    sizes = {"in_features": math.prod(shape), "out_features": outputs}
    image = (1, *shape)[-3:] if len(shape) in (2, 3) else getattr(data, "image_shape", None)
    return sizes if image is None else sizes | {"image_shape": tuple(image)}


def list_models(pattern: str = "*") -> list[str]:
    """Names of all models that match a shell pattern, including the neurons of installed packages.

    >>> list_models("conv-*")
    ['conv-mln', 'conv-mlp', 'conv-network', 'conv-perceptrons']
    """
    return sorted(fnmatch.filter({*_ENTRIES, *neuron_names()}, pattern))
