"""Parse tree shapes, in integers only: branching, fan-in and depth, or nested lists."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

from ..errors import OptionError, ShapeError, check_int

AUTO = "auto"
"""Select the branching automatically, from the fan-in: two levels."""

Branching: TypeAlias = int | str | Sequence[Any]
"""Children of a node: one number for every level, or one per level, leaf level first; a layer also takes `"auto"` and
nested children."""

NestedTree: TypeAlias = Sequence[Any]
"""A node as the list of its children: an int `n` is `n` synapses, a list is a dendrite. `[3, [2], [2, [4]]]`."""


def is_nested(branching: Any) -> TypeGuard[NestedTree]:
    """Whether a branching is a tree of nested children: a list with a list inside.

    >>> is_nested([16, 8]), is_nested([16, [8]])
    (False, True)
    """
    return _is_list(branching) and any(map(_is_list, branching))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_shape(branching: Any) -> Any:
    """Check a layer's branching and return it as `"auto"`, nested lists, an int or a tuple of ints.

    >>> check_shape([3, [2]]), check_shape([16, 8])
    ([3, [2]], (16, 8))
    """
    if is_nested(branching):
        nested_edges(branching)
        return [list(child) if _is_list(child) else child for child in branching]
    if isinstance(branching, str) and branching != AUTO:
        raise OptionError(f"branching must be 'auto', an int or a list of ints: got {branching!r}")
    return AUTO if isinstance(branching, str) else _numbers(branching)


def _numbers(branching: Any) -> int | tuple[int, ...]:
    """A branching as an int or a tuple of ints, each at least 2."""
    if not _is_list(branching):
        return check_int("branching", branching, least=2)
    if not branching:
        raise OptionError("branching must have one number per level: got an empty list")
    return tuple(check_int("branching of a level", b, least=2) for b in branching)


def auto_branching(fan_in: int) -> tuple[int, ...]:
    """Two levels near the square root of the fan-in, leaf level first; one level for fewer than four synapses.

    >>> auto_branching(784), auto_branching(50), auto_branching(3)
    ((28, 28), (8, 7), (3,))
    """
    if fan_in < 4:
        return (max(2, fan_in),)
    dendrites = math.isqrt(fan_in)
    return -(-fan_in // dendrites), dendrites


def level_sizes(
    branching: Branching, *, fan_in: int | None = None, depth: int | None = None, ragged: bool = False
) -> list[int]:
    """Rows of one tree at every level, synapses first and the root last. Integer arithmetic only.

    >>> level_sizes(5, fan_in=125)
    [125, 25, 5, 1]
    >>> level_sizes(2, fan_in=784, ragged=True)
    [784, 392, 196, 98, 49, 25, 13, 7, 4, 2, 1]
    """
    fan_in = None if fan_in is None else check_int("fan_in", fan_in)
    depth = None if depth is None else check_int("depth", depth)
    b = _numbers(branching)
    if isinstance(b, int):
        if fan_in is None:
            if depth is None:
                raise OptionError("a tree needs its fan_in or its depth: got neither")
            if depth * (b.bit_length() - 1) >= 31:
                raise ShapeError(f"a tree must have fewer than 2**31 synapses: got {b} ** {depth}")
            fan_in = b**depth
        levels = next(n for n in itertools.count(1) if b**n >= fan_in)
        if b**levels != fan_in and not ragged:
            fitting = f"{b ** (levels - 1)} or {b**levels}" if levels > 1 else f"{b}"
            raise ShapeError(
                f"fan_in must be branching ** depth: got fan_in {fan_in}, branching {b}; {fitting} would fit, or "
                "ragged=True"
            )
        if depth not in (None, levels):
            raise ShapeError(
                f"depth must match fan_in and branching: got depth {depth}, but fan_in {fan_in} with branching "
                f"{b} has depth {levels}"
            )
        b = (b,) * levels
    else:
        if depth not in (None, len(b)):
            raise ShapeError(f"depth must be the number of levels: got depth {depth} and branching {list(b)}")
        product = math.prod(b)
        fan_in = product if fan_in is None else fan_in
        if fan_in > product or (fan_in < product and not ragged):
            rule = "at most" if ragged else "the product of branching,"
            hint = "" if ragged or fan_in > product else ", or ragged=True"
            raise ShapeError(f"fan_in must be {rule} {product} for branching {list(b)}: got {fan_in}{hint}")
    return list(itertools.accumulate(b, lambda rows, children: -(-rows // children), initial=fan_in))


def nested_edges(tree: NestedTree) -> tuple[int, list[int], list[int]]:
    """Synapses, the row each edge reads, and the fan-in of each node, of a tree given by nested children.

    Nodes are numbered level by level, leaf level first; synapses in the order of their edges.

    >>> nested_edges([1, [2]])
    (3, [0, 1, 2, 3], [2, 2])
    """
    nodes: list[list[int | None]] = []  # children before parents; a child is another node's index, None a synapse
    heights: list[int] = []

    def add(node: Any) -> int:
        if isinstance(node, str | bytes) or not isinstance(node, Sequence) or not node:
            raise OptionError(f"a dendrite must be a non-empty list of synapse counts and dendrites: got {node!r}")
        children: list[int | None] = []
        for child in node:
            if isinstance(child, Sequence):
                children.append(add(child))
            else:
                children.extend([None] * check_int("synapses of a dendrite", child))
        nodes.append(children)
        heights.append(1 + max((heights[child] for child in children if child is not None), default=0))
        return len(nodes) - 1

    add(tree)
    order = sorted(range(len(nodes)), key=heights.__getitem__)
    number = {node: at for at, node in enumerate(order)}
    edges = [child for node in order for child in nodes[node]]
    synapses, synapse = edges.count(None), itertools.count()
    source = [next(synapse) if child is None else synapses + number[child] for child in edges]
    return synapses, source, [len(nodes[node]) for node in order]
