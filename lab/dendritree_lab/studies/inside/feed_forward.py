"""Replacements for a feed-forward block: two layers, which map rows to rows of the same size.

All take the place and a width, which determines the number of parameters.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dendritree.layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from dendritree.wiring import Local, Tied

from .blocks import BlockLinear, Gated, Largest, Nearby, Shift, Shuffle
from .place import GROUPS, Place

UP_SYNAPSES = 16
"""Inputs that a neuron reads if a dense layer follows."""
REACH = 3
"""Rows of a sequence, or side of a square in a grid, from which a neuron reads if it reads neighbors."""
WINDOW = 5
"""Side of the windows in rows that are images themselves."""


def mlp(place: Place, width: int) -> nn.Sequential:
    """The original, with `width` hidden units."""
    return nn.Sequential(nn.Linear(place.size, width), nn.GELU(), nn.Linear(width, place.size))


def low_rank(place: Place, width: int) -> nn.Module:
    """Products of two thin matrices, as many hidden units as the original."""
    up = [nn.Linear(place.size, width, bias=False), nn.Linear(width, place.hidden)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(place.hidden, width, bias=False), nn.Linear(width, place.size))


def blocks(place: Place, width: int) -> nn.Module:
    """Block-diagonal matrices; features are shuffled between the blocks."""
    size = place.size
    count = min((part for part in range(2, size + 1) if size % part == 0), key=lambda part: abs(part - GROUPS))
    up, down = BlockLinear(size, count * width, blocks=count), BlockLinear(count * width, size, blocks=count)
    return nn.Sequential(up, nn.GELU(), Shuffle(count, -1), down, Shuffle(count, -1))


def neurons(place: Place, width: int, *, tree: bool) -> nn.Module:
    """As many neurons as the original has; the width is the number of inputs that a hidden neuron reads."""

    def layer(inputs: int, outputs: int, synapses: int) -> nn.Module:
        options: dict[str, Any] = {"branching": "auto"} if tree else {"branching": [synapses]}
        options |= {"fan_in": synapses, "wiring": "random", "root_activation": False}
        return DendriticLayer(inputs, outputs, **options)

    back = max(2, min(place.hidden, round(width * place.hidden / place.size)))
    return nn.Sequential(
        layer(place.size, place.hidden, min(width, place.size)), nn.GELU(), layer(place.hidden, place.size, back)
    )


def up_only(place: Place, width: int, *, tree: bool = True, near: bool = False) -> nn.Module:
    """Neurons with a few synapses on the way up, a narrower dense layer on the way down.

    With `near`, synapses also read the rows beside a row, or a window of a row that is an image itself.
    """
    sequence, grid, plane = (place.sequence, place.grid, place.plane) if near else (False, None, None)
    window = min(WINDOW, *plane) if plane else 0
    inputs = window**2 if plane else place.size * (REACH if sequence else REACH**2 if grid else 1)
    synapses = min(UP_SYNAPSES, inputs)
    options: dict[str, Any] = {"fan_in": synapses, "branching": "auto" if tree else [synapses]}
    options |= {"wiring": Local(window=window, per="neuron", image_shape=(1, *plane)) if plane else "random"}
    options["root_activation"] = False
    up: nn.Module
    if sequence:
        up = Nearby(DendriticConv1d(place.size, width, REACH, **options), None, REACH - 1)
    elif grid:
        up = Nearby(DendriticConv2d(place.size, width, REACH, padding=REACH // 2, **options), grid)
    else:
        up = DendriticLayer(place.size, width, **options)
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, place.size))


def shifted(place: Place, width: int) -> nn.Module:
    """A narrower block that reads half of its features from the rows beside a row."""
    ordered = place.sequence or place.grid
    return nn.Sequential(*[Shift(place.grid)] * bool(ordered), *mlp(place, width))


def _over_rows(place: Place, features: int) -> nn.Module:
    """Weights for a row and those beside it, feature by feature; without an order of the rows, nothing."""
    if place.sequence:
        return Nearby(nn.Conv1d(features, features, REACH, groups=features), None, REACH - 1)
    if place.grid:
        return Nearby(nn.Conv2d(features, features, REACH, padding=REACH // 2, groups=features), place.grid)
    return nn.Identity()


def tied(place: Place, width: int, *, linear: bool = False) -> nn.Module:
    """On the way up, the same dendrite at a row and those beside it, or at places of a row that is an image itself.

    Rows without an order are read by sparse neurons, with `linear` or without.
    """
    activation = None if linear else "leaky_relu"
    if place.plane:
        wiring, copies = Tied.fitted((1, *place.plane), window=REACH, stride=1, copies=REACH**2)
        options: dict[str, Any] = {"wiring": wiring, "activation": activation, "root_activation": False}
        up: nn.Module = DendriticLayer(place.size, width, branching=[wiring.window**2, copies], **options)
    else:
        ordered = place.sequence or place.grid
        dendrites = _weighted_sums(place.size, width, UP_SYNAPSES, activation if ordered else None)
        up = nn.Sequential(dendrites, _over_rows(place, width))
    return nn.Sequential(up, nn.GELU(), nn.Linear(width, place.size))


def mixed_first(place: Place, width: int) -> nn.Module:
    """The control for that: the same with dense, linear dendrites."""
    up = [nn.Linear(place.size, width), _over_rows(place, width)]
    return nn.Sequential(*up, nn.GELU(), nn.Linear(width, place.size))


def _weighted_sums(rows: int, neurons: int, synapses: int, activation: str | None = None) -> nn.Module:
    """Neurons that read a few inputs each, by default without an activation."""
    synapses = min(synapses, rows)
    return DendriticLayer(rows, neurons, branching=[synapses], wiring="random", activation=activation)


def gated(place: Place, width: int) -> nn.Module:
    """On the way up, neurons of two dendrites, one of which multiplies the other."""
    dendrites = [_weighted_sums(place.size, width, UP_SYNAPSES // 2) for _ in range(2)]
    return nn.Sequential(Gated(*dendrites), nn.Linear(width, place.size))


def narrow_gated(place: Place, width: int) -> nn.Module:
    """The control for that: fewer hidden units, gated."""
    return nn.Sequential(
        Gated(nn.Linear(place.size, width), nn.Linear(place.size, width)), nn.Linear(width, place.size)
    )


def largest(place: Place, width: int) -> nn.Module:
    """On the way up, neurons that take the maximum of two dendrites."""
    dendrites = 2
    return nn.Sequential(
        _weighted_sums(place.size, dendrites * width, UP_SYNAPSES // dendrites),
        Largest(dendrites),
        nn.Linear(width, place.size),
    )


def shared_dendrites(place: Place, width: int) -> nn.Module:
    """As many dendrites as somata; every soma reads four of them, wherever they are."""
    dendrites = [_weighted_sums(place.size, width, UP_SYNAPSES), nn.GELU()]
    return nn.Sequential(*dendrites, _weighted_sums(width, width, 4), nn.GELU(), nn.Linear(width, place.size))
