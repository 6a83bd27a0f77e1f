"""The forest of a layer, from the sizes, branching and wiring that a user asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DendritreeError, OptionError, ShapeError, check_int
from ..levels import AUTO, Branching, auto_branching, check_branching, is_nested, level_sizes, nested_edges
from ..tree import Forest, IntArray
from ..wiring import Partition, Shared, Wiring, resolve_wiring
from ..wiring.base import Attachment

__all__ = ["count_neurons", "grow_forest", "resolve_wirings"]

CheckedBranching = int | tuple[int, ...] | str | list[Any]


def grow_forest(
    in_features: int,
    out_features: int,
    *,
    branching: Branching,
    depth: int | None,
    fan_in: int | None,
    wirings: Sequence[Wiring],
    repeats: int | None,
    ragged: bool,
) -> tuple[Forest, IntArray | None]:
    """The wired trees of a layer; with `repeats`, that many a neuron and a soma that joins them. And their windows.

    `wirings` has one wiring, or one for each of the repeated trees. Windows are top, left, height and width for each
    node, zeros for one without synapses; None unless every wiring has windows, all in one image.
    """
    try:
        return _grow(in_features, out_features, branching, depth, fan_in, wirings, repeats, ragged)
    except ShapeError as error:
        if isinstance(wirings[0], Shared) and _fits_partition(in_features, out_features, branching, depth, fan_in):
            hint = f"each of {out_features} neurons then reads its own {in_features // out_features} inputs"
            raise ShapeError(f"{error}; wiring='partition' would fit: {hint}") from None
        raise


def _fits_partition(
    in_features: int, out_features: int, branching: Branching, depth: int | None, fan_in: int | None
) -> bool:
    """Whether a tree fits the inputs of one neuron where each has its own."""
    own, rest = divmod(in_features, out_features)
    if rest or fan_in not in (None, own):
        return False
    try:
        return own == (
            nested_edges(branching)[0] if is_nested(branching) else level_sizes(branching, fan_in=own, depth=depth)[0]
        )
    except DendritreeError:
        return False


def _grow(
    in_features: int,
    out_features: int,
    branching: Branching,
    depth: int | None,
    fan_in: int | None,
    wirings: Sequence[Wiring],
    repeats: int | None,
    ragged: bool,
) -> tuple[Forest, IntArray | None]:
    synapses = [_fan_in(w, in_features, out_features, branching, depth, fan_in) for w in wirings]
    if len(set(synapses)) > 1:
        raise ShapeError(f"the trees of a neuron must have as many synapses each: got {synapses} from {list(wirings)}")
    ragged = ragged or any(wiring.any_fan_in for wiring in wirings)
    one_each = _unwired(branching, synapses[0], depth, out_features, ragged)
    attachments = [wiring.attach(one_each, in_features) for wiring in wirings]
    if repeats is None:
        attachment = attachments[0]
        forest = one_each.wired(attachment.inputs, in_features)
    else:
        all_trees = _unwired(branching, synapses[0], depth, out_features * repeats, ragged)
        attachment = _repeated(attachments, one_each, all_trees, repeats)
        forest = _with_somas(all_trees.wired(attachment.inputs, in_features), repeats)
    if attachment.windows is None or len({wiring.image(in_features) for wiring in wirings}) > 1:
        return forest, None
    windows = np.zeros((forest.nodes, 4), dtype=np.int32)
    windows[: len(attachment.windows)] = attachment.windows  # somas come last and have none
    windows.setflags(write=False)
    return forest, windows


def _repeated(attachments: Sequence[Attachment], one_each: Forest, all_trees: Forest, repeats: int) -> Attachment:
    """The attachments of forests with one tree a neuron as one of a forest with `repeats` trees a neuron.

    All trees are equal, so the nodes and synapses of one are those of another, in the same order.
    """
    inputs = np.empty(all_trees.synapses, dtype=np.int32)
    windows = np.zeros((all_trees.nodes, 4), dtype=np.int32)
    synapses, nodes = (
        np.argsort(tree, kind="stable").reshape(one_each.neurons, repeats, -1)
        for tree in (all_trees.neuron_of_synapse, all_trees.neuron_of_node)
    )
    synapses_of_one, nodes_of_one = (
        np.argsort(tree, kind="stable").reshape(one_each.neurons, -1)
        for tree in (one_each.neuron_of_synapse, one_each.neuron_of_node)
    )
    for repeat in range(repeats):
        attachment = attachments[repeat % len(attachments)]
        inputs[synapses[:, repeat]] = attachment.inputs[synapses_of_one]
        if attachment.windows is not None:
            windows[nodes[:, repeat]] = attachment.windows[nodes_of_one]
    return Attachment(inputs, None if any(each.windows is None for each in attachments) else windows)


def _fan_in(
    wiring: Wiring, in_features: int, out_features: int, branching: Branching, depth: int | None, fan_in: int | None
) -> int:
    """Synapses of a tree: as asked for, as the tree's own shape says, or as the wiring has it."""
    natural: int | None = None
    if is_nested(branching):
        if depth is not None:
            raise OptionError(f"depth must be left out for nested children, which have their own: got {depth}")
        natural = Forest.nested(branching).synapses
    elif not isinstance(branching, str) and (not isinstance(branching, int) or depth is not None):
        natural = level_sizes(branching, depth=depth)[0]
    if fan_in is None and wiring.any_fan_in and natural is not None:
        fan_in = natural
    if fan_in is None:
        fan_in = wiring.fan_in(in_features, out_features)
    else:
        fan_in = wiring.check_fan_in(fan_in, in_features, out_features)
    if is_nested(branching) and fan_in != natural:
        raise ShapeError(f"fan_in must be the {natural} synapses of the nested tree: got {fan_in}")
    return fan_in


def _unwired(branching: Branching, fan_in: int, depth: int | None, trees: int, ragged: bool) -> Forest:
    if is_nested(branching):
        return Forest.join([Forest.nested(branching)] * trees)
    if branching == AUTO:
        branching, ragged = auto_branching(fan_in), True
        if depth is not None and check_int("depth", depth) != len(branching):
            raise OptionError(
                f"depth must be left out for branching 'auto', which grows {len(branching)} levels here: got {depth}; "
                "give branching too, such as 2"
            )
    return Forest.grow(branching, fan_in=fan_in, depth=depth, neurons=trees, ragged=ragged)


def _with_somas(forest: Forest, trees: int) -> Forest:
    """Join every `trees` neurons by one more node."""
    somas = forest.neurons // trees
    source = np.concatenate([forest.source, forest.in_features + forest.roots])
    offsets = np.concatenate([forest.offsets, forest.edges + trees * np.arange(1, somas + 1)])
    return Forest(forest.in_features, _int32(source), _int32(offsets), _int32(forest.nodes + np.arange(somas)))


def _int32(values: Any) -> IntArray:
    if values.max(initial=0) >= 2**31:
        raise ShapeError(f"a forest must have fewer than 2**31 rows: got {values.max():,}")
    return values.astype(np.int32)  # type: ignore[no-any-return]


def resolve_wirings(
    wiring: str | Wiring | Sequence[str | Wiring] | None, out_features: int | None, repeats: int | None
) -> tuple[Wiring, ...]:
    """One wiring, or one for each of the repeated trees.

    >>> resolve_wirings(None, 10, None), resolve_wirings(None, None, None)
    ((Shared(),), (Partition(),))
    """
    if wiring is None:
        wiring = "partition" if out_features is None else "shared"
    if isinstance(wiring, str | Wiring) or not isinstance(wiring, Sequence):
        return (resolve_wiring(wiring),)
    if repeats is None or len(wiring) != repeats:
        raise OptionError(
            f"a list of wirings must have one for each repeated tree: got {len(wiring)}, repeats {repeats}"
        )
    return tuple(resolve_wiring(each) for each in wiring)


# ------------------------------------------------------------------------------------------------- how many neurons


def count_neurons(
    in_features: int,
    out_features: int | None,
    branching: Branching,
    depth: int | None,
    wiring: Wiring,
    ragged: bool,
) -> int:
    """The number of neurons: as given, or what the paper's law for `partition` leaves."""
    if out_features is not None:
        out_features = check_int("out_features", out_features)
    if not isinstance(wiring, Partition):
        if out_features is None:
            raise OptionError(f"out_features is required for wiring {wiring.name!r}: got None")
        return out_features
    if isinstance(branching, str) or is_nested(branching):
        if out_features is None:
            raise OptionError(
                f"out_features must be given for branching {branching!r}: got None; the number of neurons follows only "
                "from numbers: branching and depth, or one branching per level"
            )
        return out_features
    branching = check_branching(branching)
    levels = isinstance(branching, tuple)
    law = "in_features must be out_features * " + ("the product of branching" if levels else "branching ** depth")
    if out_features is None:
        if depth is None and not levels:
            raise OptionError(f"{law}: give out_features or depth, got neither")
        fan_in = level_sizes(branching, depth=depth)[0]
        out_features, rest = divmod(in_features, fan_in)
        if rest or not out_features:
            fitting = f"{out_features * fan_in} or {(out_features + 1) * fan_in}" if out_features else f"{fan_in}"
            given = f"branching {branching}" + ("" if depth is None else f", depth {depth}")
            raise ShapeError(f"{law}: got in_features {in_features}, {given}; {fitting} inputs would fit")
        return out_features
    if not ragged:
        _check_law(law, in_features, out_features, branching, depth)
    return out_features


def _check_law(
    law: str, in_features: int, out_features: int, branching: int | tuple[int, ...], depth: int | None
) -> None:
    """Check I = O b^d in integers; name the numbers of inputs that would fit."""
    got = f"got in_features {in_features}, out_features {out_features}, branching {branching}"
    if isinstance(branching, int) and depth is None:
        fitting = [out_features * branching]
        while fitting[-1] < in_features:
            fitting.append(fitting[-1] * branching)
        if fitting[-1] != in_features:
            sizes = " or ".join(map(str, fitting[-2:]))
            raise ShapeError(f"{law}: {got}; {sizes} inputs would fit, or ragged=True")
        return
    fan_in = level_sizes(branching, depth=depth)[0]
    if in_features != out_features * fan_in:
        given = "" if depth is None else f", depth {depth}"
        raise ShapeError(f"{law}: {got}{given}; {out_features * fan_in} inputs would fit")
