"""Wirings: which input each synapse reads.

A wiring is a small frozen object. It determines how many synapses a neuron of a layer has (`fan_in`) and which input
each of them reads (`index`). Nothing is ever copied: kernels read the inputs through the index.
"""

from __future__ import annotations

import dataclasses

from ..errors import OptionError, check_one_of
from .image_orders import Morton
from .interface import Wiring
from .plain import Custom, Partition, Random, Shared, Strided
from .windows import Local, Tied

__all__ = [
    "WIRINGS",
    "Custom",
    "Local",
    "Morton",
    "Partition",
    "Random",
    "Shared",
    "Strided",
    "Tied",
    "Wiring",
    "resolve_wiring",
    "with_image",
]

WIRINGS: dict[str, type[Wiring]] = {
    wiring.name: wiring for wiring in (Partition, Shared, Random, Strided, Morton, Local, Tied, Custom)
}
"""Wirings by name; a name stands for the wiring with its default options."""


def resolve_wiring(wiring: str | Wiring) -> Wiring:
    """The wiring of a name, with default options; a wiring is returned unchanged.

    >>> resolve_wiring("shared")
    Shared()
    """
    if isinstance(wiring, Wiring):
        return wiring
    if isinstance(wiring, str):
        if check_one_of("wiring", wiring, WIRINGS) == Custom.name:
            raise OptionError("a custom wiring needs its inputs: pass Custom(inputs), not 'custom'")
        return WIRINGS[wiring]()
    raise OptionError(f"wiring must be a name or a Wiring object: got {wiring!r}")


def with_image(wiring: str | Wiring, image_shape: tuple[int, int, int]) -> Wiring:
    """A wiring that has this image if it is for images and has no `image_shape` of its own.

    >>> with_image("morton", (16, 4, 4))
    Morton(image_shape=(16, 4, 4))
    """
    resolved = resolve_wiring(wiring)
    if getattr(resolved, "image_shape", image_shape) is None:
        return dataclasses.replace(resolved, image_shape=image_shape)  # type: ignore[call-arg]
    return resolved
