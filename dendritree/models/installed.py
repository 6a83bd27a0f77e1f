"""Neurons of other installed packages: found by their entry points, imported when one is requested by name.

A package names its neuron in its metadata, `[project.entry-points."dendritree.neurons"]` of pyproject.toml. The name of
an entry point is that of the neuron, so names can be listed without importing anything, and a broken package fails only
when its neuron is requested.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from ..errors import OptionError

GROUP = "dendritree.neurons"


def installed_names() -> list[str]:
    """Names of all neurons of installed packages, sorted.

    >>> all(isinstance(name, str) for name in installed_names())
    True
    """
    return sorted(_found(tuple(sys.path)))


def import_installed(name: str, known: Callable[[str], bool]) -> None:
    """Import the package that has the neuron `name`; nothing happens if there is none.

    Args:
        name: name of an entry point.
        known: returns whether a neuron is registered; raise an error if `name` is not after the import.

    >>> import_installed("no such neuron", lambda name: False)
    """
    points = _found(tuple(sys.path)).get(name, ())
    if len(points) > 1:
        raise OptionError(
            f"a neuron must come from one package: {name!r} is in {' and '.join(sorted(map(_package, points)))}"
        )
    for point in points:
        try:
            point.load()
        except Exception as error:  # third-party code: anything may happen, and the user must know whose it is
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise OptionError(f"neuron {name!r} of package {_package(point)} cannot be imported: {why:.300}") from error
        if not known(name):
            raise OptionError(
                f"package {_package(point)} must register the neuron {name!r} that its entry point names: importing "
                f"{point.value} did not"
            )


@functools.lru_cache(maxsize=8)  # reading the metadata of 200 packages takes 0.1 s; a changed path is read again
def _found(path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of our group on the import path, by name; duplicates within a package count once."""
    del path
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, {}).setdefault(_package(point), point)
    return {name: tuple(points.values()) for name, points in found.items()}


def _package(point: EntryPoint) -> str:
    return "of no name" if point.dist is None else f"{point.dist.name} {point.dist.version}"
