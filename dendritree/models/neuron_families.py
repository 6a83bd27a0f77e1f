"""Custom neurons by name: what `NeuronNetwork`, `create_model` and `dendritree compare` need to know about them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from ..errors import OptionError, check_one_of
from .installed import import_installed, installed_names
from .registry import create_model, register_function

Layer = TypeVar("Layer", bound=Callable[..., nn.Module])

RESERVED = (
    *("tree", "sparse", "dense", "linear", "tied", "tied-linear", "conv", "tree-conv"),
    *("ktree", "denn", "dnm", "dmnn", "dann"),
)
"""Families of this library, whose names a custom neuron must not take."""
PLACEMENT = ("device", "dtype")


@dataclass(frozen=True)
class NeuronFamily:
    """A registered kind of neurons."""

    name: str
    title: str
    """One line that says what they are."""
    layer: Callable[..., nn.Module]
    """Makes a layer of them, with the arguments of `nn.Linear` and keyword options."""
    choices: Mapping[str, tuple[Any, ...]]
    """Values of options that a search may choose from."""


_NEURONS: dict[str, NeuronFamily] = {}


def register_neuron(
    name: str, *, title: str | None = None, choices: Mapping[str, Sequence[Any]] | None = None
) -> Callable[[Layer], Layer]:
    """Decorator: register a layer of neurons by `name`, as a hidden layer of networks and as a family of comparisons.

    The layer takes `in_features`, `out_features`, keyword options, `device` and `dtype`, as `nn.Linear` does, and maps
    (..., in_features) to (..., out_features). It can then be used in

    - `NeuronNetwork(..., neuron=name, options={...})` and `create_model(name, in_features=..., hidden=[...])`;
    - `save` and `load`, which store the name of the neuron and never code;
    - `dendritree compare --families name`, if an installed package registers it: see docs/neurons.md.

    Registering again from the same place, as in a notebook cell that is run twice, replaces it.

    Args:
        name: lower-case letters, digits and hyphens; new.
        title: one line that says what the neurons are; the first line of the layer's docstring by default.
        choices: values of options that a search may choose from, for example `{"gates": (1, 2, 4)}`.

    Example::

        @register_neuron("doubled")
        class Doubled(nn.Linear):
            "Twice the output of a linear neuron."

            def forward(self, x):
                return 2 * super().forward(x)

        create_model("doubled", in_features=4, hidden=[3], out_features=2)

    >>> register_neuron("dnm")
    Traceback (most recent call last):
    dendritree.errors.OptionError: the name of a neuron must be new: 'dnm' is a family of this library
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name):
        raise OptionError(f"the name of a neuron must be lower-case letters, digits and hyphens: got {name!r:.60}")
    if name in RESERVED:
        raise OptionError(f"the name of a neuron must be new: {name!r} is a family of this library")

    def decorate(layer: Layer) -> Layer:
        options = _check_contract(name, layer)
        kept = {check_one_of(f"a choice of {name!r}", key, options): tuple(of) for key, of in (choices or {}).items()}
        for key, values in kept.items():
            odd = [value for value in values if not (value is None or isinstance(value, bool | int | float | str))]
            if odd or not values:
                raise OptionError(f"choices of {key} must be plain values, at least one: got {values!r:.100}")
        first_line = (inspect.getdoc(layer) or "").partition("\n")[0]
        family = NeuronFamily(name, title or first_line or name, layer, kept)
        before = _NEURONS.get(name)
        if before is None:
            register_function(name, example={"in_features": 16, "hidden": [6], "out_features": 3})(_network_of(family))
        elif _place(before.layer) != _place(layer):
            raise OptionError(f"the name of a neuron must be new: {name!r} is already {'.'.join(_place(before.layer))}")
        _NEURONS[name] = family
        return layer

    return decorate


def neuron_names() -> list[str]:
    """Names of all registered neurons and of those in installed packages, which are not imported."""
    return sorted({*_NEURONS, *installed_names()} - set(RESERVED))


def neuron_family(name: str) -> NeuronFamily:
    """A registered neuron; an installed package that has it is imported."""
    if name not in _NEURONS:
        import_installed(check_one_of("neuron", name, neuron_names()), _NEURONS.__contains__)
    return _NEURONS[name]


def _check_contract(name: str, layer: Callable[..., nn.Module]) -> list[str]:
    """Check the signature of a layer; return the names of its options."""
    parameters = list(inspect.signature(layer).parameters.values())
    names = [parameter.name for parameter in parameters]
    if names[:2] != ["in_features", "out_features"] or not set(PLACEMENT) <= set(names):
        raise OptionError(
            f"a layer of neurons must take in_features, out_features, options, device and dtype, as nn.Linear does: "
            f"that of {name!r} takes {', '.join(names) or 'nothing'}"
        )
    return [key for key in names[2:] if key not in PLACEMENT]


def _network_of(family: NeuronFamily) -> Callable[..., nn.Module]:
    """The function that `create_model` calls; it builds a `NeuronNetwork`, which stores the name of its neurons."""

    def network(
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        options: Mapping[str, Any] | None = None,
        norm: str | None = None,
        dropout: float = 0.0,
        output: str = "logits",
        device: Any = None,
        dtype: Any = None,
    ) -> nn.Module:
        sizes = {"in_features": in_features, "hidden": hidden, "out_features": out_features}
        given = {"options": options, "norm": norm, "dropout": dropout, "output": output}
        return create_model("neuron-network", neuron=family.name, **sizes, **given, device=device, dtype=dtype)

    network.__doc__ = family.title
    return network


def _place(layer: Callable[..., nn.Module]) -> tuple[str, str]:
    return layer.__module__, layer.__qualname__
