"""Kinds of replacements for a network's feed-forward blocks and convolutions, and how large they may be.

A *part* maps rows or images to ones of the same size. Every kind of part has one free number, its width, which is as
large as a share of the original's parameters allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of, widest

from . import convolutions as images
from . import feed_forward as rows
from .place import Place

Build = Callable[[Place, int], nn.Module]
"""(place, width) -> the part."""


@dataclass(frozen=True)
class Kind:
    """A kind of part."""

    title: str
    rows: Build | None
    """A feed-forward block; None if the kind has none."""
    images: Build | None
    """A block of two 3 x 3 convolutions; None if the kind has none."""
    dendritic: bool = False
    by_default: bool = True
    """False for a kind that is compared only on request."""


KINDS = {
    "narrow": Kind("fewer hidden units or channels", rows.mlp, images.narrow),
    "low-rank": Kind("products of two thin matrices", rows.low_rank, images.low_rank),
    "block": Kind("block-diagonal matrices, shuffled", rows.blocks, images.grouped),
    "separable": Kind("depthwise-separable convolutions", None, images.separable),
    "blueprint": Kind("dense layers, then weights for places", rows.mixed_first, images.blueprint),
    "sparse": Kind("sparse neurons", partial(rows.neurons, tree=False), partial(images.neurons, tree=False)),
    "tree": Kind(
        "dendritic trees", partial(rows.neurons, tree=True), partial(images.neurons, tree=True), dendritic=True
    ),
    "tree-up": Kind("dendritic trees on the way up only", rows.up_only, None, dendritic=True),
    "tree-near": Kind("the same, reading neighbors too", partial(rows.up_only, near=True), None, dendritic=True),
    "sparse-near": Kind(
        "sparse neurons on the way up, reading neighbors too", partial(rows.up_only, tree=False, near=True), None
    ),
    "narrow-shift": Kind("fewer hidden units, half of the features from neighbors", rows.shifted, None),
    "tied": Kind("the same dendrite at neighboring places", rows.tied, images.tied, dendritic=True),
    "tied-linear": Kind(
        "the same with linear dendrites", partial(rows.tied, linear=True), partial(images.tied, linear=True)
    ),
    "gated": Kind("one dendrite multiplies another", rows.gated, None, dendritic=True, by_default=False),
    "narrow-gated": Kind("fewer gated units", rows.narrow_gated, None, by_default=False),
    "max": Kind("the maximum of two dendrites", rows.largest, None, dendritic=True, by_default=False),
    "shared": Kind(
        "somata that share dendrites", rows.shared_dendrites, images.shared, dendritic=True, by_default=False
    ),
}
"""Replacements by name; `narrow` at a share of 1 is the original."""
ORIGINAL = "narrow"


def make_part(kind: str, place: Place, share: float) -> nn.Module | None:
    """A part of at most a share of the original's parameters; None if even the smallest of its kind is larger.

    Args:
        kind: a name of `KINDS`.
        place: the place of the part.
        share: of the original's parameters.

    >>> place = Place("rows", 64, 256)
    >>> part = make_part("tree", place, share=0.1)
    >>> parameters_of(part) <= 0.1 * parameters_of(make_part("narrow", place, share=1.0))
    True
    """
    build: Build | None = getattr(KINDS[kind], place.where)
    if build is None:
        known = [name for name in KINDS if getattr(KINDS[name], place.where)]
        raise OptionError(f"kind {kind!r} has no {place.where}: give one of {known}")
    if kind == ORIGINAL and share == 1.0:
        return build(place, place.hidden)
    with torch.device("meta"):
        original = parameters_of(getattr(KINDS[ORIGINAL], place.where)(place, place.hidden))
    most = _most_synapses(kind, place)

    def parameters(width: int) -> int:
        if most is not None and width > most:
            return original + 1  # no neuron can read more inputs than there are
        with torch.device("meta"):
            return parameters_of(build(place, width))

    width = widest(parameters, int(share * original), least=2)
    return None if width is None else build(place, width)


def _most_synapses(kind: str, place: Place) -> int | None:
    """The number of inputs, for kinds whose width is a number of synapses; None for the others."""
    if kind in ("tree", "sparse"):
        return place.size if place.where == "rows" else 9 * place.size
    return place.size if (kind, place.where) == ("shared", "images") else None
