"""Parse tree shapes, in integers only: branching, fan-in and depth, or nested lists."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

from ..errors import OptionError, ShapeError, check_int, check_one_of

AUTO = "auto"
"""The branching that is chosen from the fan-in: two levels."""

Branching: TypeAlias = int | str | Sequence[Any]
"""Children of a node: one number for every level, or one per level, leaf level first; a layer also takes `"auto"` and
nested children."""

NestedTree: TypeAlias = Sequence[Any]
"""A node as the list of its children: an int `n` is `n` synapses, a list is a dendrite. `[3, [2], [2, [4]]]`."""


def check_branching(branching: Any) -> int | tuple[int, ...]:
    """Return a branching as an int or a tuple of ints, each at least 2, or raise an error.

    >>> check_branching([16, 8])
    (16, 8)
    """
    if not isinstance(branching, Sequence) or isinstance(branching, str | bytes):
        return check_int("branching", branching, least=2)
    if not branching:
        raise OptionError("branching must have one number per level: got an empty list")
    return tuple(check_int("branching of a level", b, least=2) for b in branching)


def is_nested(branching: Any) -> TypeGuard[NestedTree]:
    """Whether a branching is a tree of nested children: a list with a list inside.

    >>> is_nested([16, 8]), is_nested([16, [8]])
    (False, True)
    """
    plain = isinstance(branching, str | bytes) or not isinstance(branching, Sequence)
    return not plain and any(isinstance(child, Sequence) and not isinstance(child, str) for child in branching)


def check_shape(branching: Any) -> Any:
    """Check a layer's branching and return it as `"auto"`, nested lists, an int or a tuple of ints.

    >>> check_shape([3, [2]]), check_shape([16, 8])
    ([3, [2]], (16, 8))
    """
    if is_nested(branching):
        try:
            nested_edges(branching)
        except RecursionError:
            raise OptionError(
                "nested children must not be deeper than Python's recursion limit: got too many levels"
            ) from None
        return [list(child) if isinstance(child, Sequence) else child for child in branching]
    if isinstance(branching, str):
        return check_one_of("branching", branching, [AUTO])
    return check_branching(branching)


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
    branching = check_branching(branching)
    if isinstance(branching, tuple):
        return _sizes_by_list(branching, fan_in, depth, ragged)
    if fan_in is None:
        if depth is None:
            raise OptionError("a tree needs its fan_in or its depth: got neither")
        if depth * (branching.bit_length() - 1) >= 31:
            raise ShapeError(f"a tree must have fewer than 2**31 synapses: got {branching} ** {depth}")
        fan_in = branching**depth
    sizes = [fan_in]
    while sizes[-1] > 1 or len(sizes) == 1:
        nodes, rest = divmod(sizes[-1], branching)
        if rest and not ragged:
            raise ShapeError(
                f"fan_in must be branching ** depth: got fan_in {fan_in}, branching {branching}; "
                f"{_powers_around(fan_in, branching)} would fit, or ragged=True"
            )
        sizes.append(nodes + bool(rest))
    if depth is not None and depth != len(sizes) - 1:
        raise ShapeError(
            f"depth must be that of fan_in and branching: got depth {depth}, but fan_in {fan_in} with branching "
            f"{branching} has depth {len(sizes) - 1}"
        )
    return sizes


def _sizes_by_list(branching: tuple[int, ...], fan_in: int | None, depth: int | None, ragged: bool) -> list[int]:
    """`level_sizes` for one branching per level, leaf level first."""
    if depth is not None and depth != len(branching):
        raise ShapeError(f"depth must be the number of levels: got depth {depth} and branching {list(branching)}")
    product = math.prod(branching)
    fan_in = product if fan_in is None else fan_in
    if fan_in > product or (fan_in < product and not ragged):
        rule = "at most" if ragged else "the product of branching,"
        hint = "" if ragged or fan_in > product else ", or ragged=True"
        raise ShapeError(f"fan_in must be {rule} {product} for branching {list(branching)}: got {fan_in}{hint}")
    sizes = [fan_in]
    for b in branching:
        sizes.append(-(-sizes[-1] // b))
    return sizes


def _powers_around(number: int, base: int) -> str:
    """The powers of `base` next to `number`, for error messages: `512 or 1024`."""
    above = base
    while above < number:
        above *= base
    below = above // base
    return f"{below} or {above}" if below > 1 else f"{above}"


def nested_edges(tree: NestedTree) -> tuple[int, list[int], list[int]]:
    """Synapses, the row each edge reads, and the fan-in of each node, of a tree given by nested children.

    Nodes are numbered level by level, leaf level first; synapses in the order of their edges.

    >>> nested_edges([1, [2]])
    (3, [0, 1, 2, 3], [2, 2])
    """
    levels: list[list[list[tuple[int, int] | None]]] = []  # level -> node -> children: (level, place), None = synapse

    def add(node: Any) -> tuple[int, int]:
        if isinstance(node, str | bytes) or not isinstance(node, Sequence) or not node:
            raise OptionError(f"a dendrite must be a non-empty list of synapse counts and dendrites: got {node!r}")
        children: list[tuple[int, int] | None] = []
        for child in node:
            if isinstance(child, Sequence):
                children.append(add(child))
            else:
                children.extend([None] * check_int("synapses of a dendrite", child))
        level = 1 + max((child[0] for child in children if child), default=-1)
        while len(levels) <= level:
            levels.append([])
        levels[level].append(children)
        return level, len(levels[level]) - 1

    add(tree)
    first = [0, *itertools.accumulate(len(level) for level in levels)]
    nodes = [children for level in levels for children in level]
    edges = [child for children in nodes for child in children]
    synapses, order = edges.count(None), itertools.count()
    source = [next(order) if child is None else synapses + first[child[0]] + child[1] for child in edges]
    return synapses, source, [len(children) for children in nodes]
