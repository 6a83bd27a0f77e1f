"""How large the trees may be: from a budget to widths and fan-ins, counted before anything is built."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import DendritreeError, OptionError, ShapeError
from ..levels import AUTO, Branching, auto_branching, is_nested, level_sizes
from ..tree import Forest
from ..wiring import Random, Wiring
from .blocks import Block
from .perceptrons import Perceptron
from .replacement import Replacement, Trees

SYNAPSES, DENDRITES = 8, 4
"""Of a hidden neuron's tree if the user does not choose its shape: the best for tables in docs/comparison.md."""


def fit_blocks(
    blocks: Sequence[Block], budget: float | int, wiring: Wiring, branching: Branching
) -> tuple[list[Replacement], dict[str, str]]:
    """The largest replacements within the budget, which is divided in proportion to the blocks' parameters.

    Also why the other blocks cannot be that small, by the names of their layers. If the budget is a number, their share
    goes to the rest.
    """
    reasons: dict[str, str] = {}
    while True:
        before = len(reasons)
        left = [block for block in blocks if block[0].name not in reasons]
        now = sum(_parameters(block) for block in left)
        share = budget if isinstance(budget, float) else budget / max(now, 1)
        found = []
        for block in left:
            try:
                found.append(_fit(block, math.floor(share * _parameters(block) + 1e-9), wiring, branching))
            except DendritreeError as error:
                reasons |= {perceptron.name: str(error) for perceptron in block}
        if len(reasons) == before:
            return found, reasons


def _parameters(block: Block) -> int:
    return sum(perceptron.parameters for perceptron in block)


def _fit(block: Block, allowance: int, wiring: Wiring, branching: Branching) -> Replacement:
    """The largest replacement of at most `allowance` parameters."""
    least, most = 2, None
    if len(block) == 1:
        inputs = block[0].in_features
        least = min(2, inputs)
        most = inputs if _fan_in_is_free(wiring, branching) else least
    return _largest(partial(_replacement, block, wiring, branching), allowance, least=least, most=most)


def _replacement(block: Block, wiring: Wiring, branching: Branching, size: int) -> Replacement:
    """A replacement of a size: the fan-in of a single layer, which keeps its neurons, or the hidden width of an MLP."""
    inputs = block[0].in_features
    if len(block) == 1:
        fan_in = size if _fan_in_is_free(wiring, branching) else None
        return Replacement(block, (_trees(block[0], inputs, block[0].out_features, branching, fan_in, wiring),))
    trees: list[Trees] = []
    widest = max(perceptron.out_features for perceptron in block[:-1])
    for perceptron in block[:-1]:
        # An image, or any order of the inputs, exists only for the first layer.
        each = Random() if trees else wiring
        neurons = max(1, round(perceptron.out_features / widest * size))
        shape, fan_in = branching, None
        if branching == AUTO and each.any_fan_in:
            shape = (max(2, min(inputs, SYNAPSES)), DENDRITES)
        elif _fan_in_is_free(each, branching):
            fan_in = min(inputs, SYNAPSES * DENDRITES)
        trees.append(_trees(perceptron, inputs, neurons, shape, fan_in, each))
        inputs = neurons
    return Replacement(block, tuple(trees))


def _fan_in_is_free(wiring: Wiring, branching: Branching) -> bool:
    return wiring.any_fan_in and (branching == AUTO or isinstance(branching, int))


def _largest(build: Callable[[int], Replacement], allowance: int, *, least: int, most: int | None) -> Replacement:
    """The largest replacement within an allowance, by a search over a size that it grows with."""
    smallest = build(least)
    if smallest.parameters > allowance:
        raise OptionError(f"trees here have at least {smallest.parameters:,} parameters: its budget is {allowance:,}")

    def fits(size: int) -> bool:
        try:
            return build(size).parameters <= allowance
        except ShapeError:  # `partition` takes only numbers of neurons that divide the inputs
            return False

    low, high = least, 2 * least if most is None else most + 1
    while most is None and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return build(low)


def _trees(like: Perceptron, ins: int, outs: int, branching: Any, fan_in: int | None, wiring: Wiring) -> Trees:
    """A layer of trees as `DendriticLayer` would grow them, with biases if the perceptron has any."""
    if is_nested(branching):
        tree, shape = Forest.nested(branching), branching
        edges, nodes = tree.edges, tree.nodes
    else:
        synapses = fan_in
        if synapses is None:
            by_shape = wiring.any_fan_in and not isinstance(branching, int | str)
            synapses = level_sizes(branching)[0] if by_shape else wiring.fan_in(ins, outs)
        if synapses < min(2, ins):
            raise ShapeError(f"a tree must have two synapses or more: {outs} neurons leave {synapses} of {ins} inputs")
        levels = level_sizes(auto_branching(synapses) if branching == AUTO else branching, fan_in=synapses, ragged=True)
        by_level = [-(-below // above) for below, above in itertools.pairwise(levels)]
        shape = f"b={branching}" if isinstance(branching, int) else by_level
        edges, nodes = sum(levels[:-1]), sum(levels[1:])
    bias = like.bias is not None
    return Trees(ins, outs, branching, fan_in, wiring, bias, str(shape), outs * edges, outs * nodes)
