"""Neurons by name: the layer and the label of each, and the option values that a search may try.

The neurons of this library register themselves when their modules are imported. Another package names its neurons in
its metadata, `[project.entry-points."dendritree.neurons"]` of pyproject.toml, under the names it registers them with:
they can then be listed without importing the package, and a broken one fails only when its neuron is requested.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from torch import nn

from ..errors import OptionError, check_one_of

Layer = TypeVar("Layer", bound=Callable[..., nn.Module])
Choices = Mapping[str, Sequence[Any]]

GROUP = "dendritree.neurons"
PLACEMENT = ("device", "dtype")
RESERVED: set[str] = set()
"""Names that no neuron may take: those of the models, to which the lab adds those of its families."""


@dataclass(frozen=True)
class NeuronFamily:
    """A registered kind of neuron."""

    name: str
    label: str
    """Short enough for a column of a table or the end of a line in a chart."""
    title: str
    """One line that says what they are."""
    layer: Callable[..., nn.Module]
    """Builds a layer of them, with the arguments of `nn.Linear` and keyword options."""
    options: tuple[str, ...]
    """The names of these options."""
    choices: Choices
    """Values of options that a search may try."""
    image_choices: Choices
    """Values that replace these if the inputs are an image."""

    @property
    def example(self) -> dict[str, Any]:
        """Options that build a layer: the first of the choices.

        >>> neuron_family("denn").example
        {'branches': 2}
        """
        return {option: values[0] for option, values in self.choices.items()}


_NEURONS: dict[str, NeuronFamily] = {}


def register_neuron(
    name: str,
    *,
    label: str | None = None,
    title: str | None = None,
    choices: Choices | None = None,
    image_choices: Choices | None = None,
) -> Callable[[Layer], Layer]:
    """Decorator: register a layer of neurons by `name`, as a hidden layer of networks and as a family of comparisons.

    The layer takes `in_features`, `out_features`, keyword options, `device` and `dtype`, as `nn.Linear` does, and maps
    (..., in_features) to (..., out_features). It can then be used in

    - `NeuronNetwork(..., neuron=name, options={...})` and `create_model(name, in_features=..., hidden=[...])`;
    - `save` and `load`, which store the name of the neuron and never code;
    - `dendritree compare --families name`, if an installed package registers it: see docs/neurons.md. Options called
      `image_shape` and `input_range` get the values of the data there.

    Registering again from the same place, as in a notebook cell that is run twice, replaces the neuron.

    Args:
        name: lower-case letters, digits and hyphens; new.
        label: a short name for tables and charts; the name by default.
        title: one line that says what the neurons are; the first line of the layer's docstring by default.
        choices: values of options that a search may try, for example `{"gates": (1, 2, 4)}`. The first values build an
            example.
        image_choices: values that replace these if the inputs are an image.

    Example::

        @register_neuron("doubled")
        class Doubled(nn.Linear):
            "Twice the output of a linear neuron."

            def forward(self, x):
                return 2 * super().forward(x)

        create_model("doubled", in_features=4, hidden=[3], out_features=2)

    >>> register_neuron("dnm")(nn.Linear).__name__
    Traceback (most recent call last):
    dendritree.errors.OptionError: the name of a neuron must be new: 'dnm' is already dendritree.neurons.dnm.DNM
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name):
        raise OptionError(f"the name of a neuron must be lower-case letters, digits and hyphens: got {name!r:.60}")
    if name in RESERVED:
        raise OptionError(f"the name of a neuron must be new: {name!r} is a model of dendritree")

    def decorate(layer: Layer) -> Layer:
        options = _options_of(name, layer)
        for option, values in [*(choices or {}).items(), *(image_choices or {}).items()]:
            check_one_of(f"a choice of {name!r}", option, options)
            if not values or not all(value is None or isinstance(value, bool | int | float | str) for value in values):
                raise OptionError(f"choices of {option} must be plain values, at least one: got {values!r:.100}")
        if name in _NEURONS and _home(_NEURONS[name].layer) != _home(layer):
            raise OptionError(f"the name of a neuron must be new: {name!r} is already {_home(_NEURONS[name].layer)}")
        first_line = (inspect.getdoc(layer) or "").partition("\n")[0]
        _NEURONS[name] = NeuronFamily(
            name, label or name, title or first_line or name, layer, options, choices or {}, image_choices or {}
        )
        return layer

    return decorate


def neuron_names() -> list[str]:
    """Names of all registered neurons, then of those in installed packages, which are not imported.

    >>> neuron_names()[:5]
    ['dann', 'denn', 'dmnn', 'dnm', 'ktree']
    """
    return [name for name in [*_NEURONS, *sorted(_installed().keys() - _NEURONS.keys())] if name not in RESERVED]


def neuron_family(name: str) -> NeuronFamily:
    """A registered neuron; the installed package that provides it is imported if necessary."""
    if not (isinstance(name, str) and name in _NEURONS):
        _import(check_one_of("neuron", name, neuron_names()), _installed()[name])
    return _NEURONS[name]


def _options_of(name: str, layer: Callable[..., nn.Module]) -> tuple[str, ...]:
    """Check the signature of a layer; return the names of its options."""
    names = list(inspect.signature(layer).parameters)
    if names[:2] != ["in_features", "out_features"] or not set(PLACEMENT) <= set(names):
        raise OptionError(
            f"a layer of neurons must take in_features, out_features, options, device and dtype, as nn.Linear does: "
            f"that of {name!r} takes {', '.join(names) or 'nothing'}"
        )
    return tuple(option for option in names[2:] if option not in PLACEMENT)


def _home(layer: Callable[..., nn.Module]) -> str:
    return f"{layer.__module__}.{layer.__qualname__}"


# -------------------------------------------------------------------------------------------------- installed packages


def _installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of our group on the import path, by name; duplicates within a package count once."""
    return _entry_points(tuple(sys.path))


@functools.lru_cache(maxsize=8)  # reading the metadata of 200 packages takes 0.1 s; a changed path is read again
def _entry_points(path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    del path
    points: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, {}).setdefault(_package(point), point)
    return {name: tuple(of_packages.values()) for name, of_packages in points.items()}


def _import(name: str, points: Sequence[EntryPoint]) -> None:
    """Import the package that provides a neuron; raise an error that names it if that does not register the neuron."""
    packages = " and ".join(sorted(map(_package, points)))
    if len(points) > 1:
        raise OptionError(f"a neuron must come from one package: {name!r} is in {packages}")
    try:
        points[0].load()
    except Exception as error:  # third-party code: anything may happen, and the user must know whose it is
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise OptionError(f"could not import neuron {name!r} of package {packages}: {why:.300}") from error
    if name not in _NEURONS:
        raise OptionError(
            f"package {packages} must register the neuron {name!r} that its entry point names: importing "
            f"{points[0].value} did not"
        )


def _package(point: EntryPoint) -> str:
    return "of no name" if point.dist is None else f"{point.dist.name} {point.dist.version}"
