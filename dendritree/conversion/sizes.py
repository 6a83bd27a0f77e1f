"""How large the trees may be: from a budget to widths and fan-ins, counted before anything is built."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DendritreeError, OptionError, ShapeError
from ..levels import AUTO, Branching, auto_branching, is_nested, level_sizes
from ..tree import Forest
from ..wiring import Random, Wiring
from .blocks import Part

__all__ = ["Plan", "Trees", "plan_parts"]

SYNAPSES, DENDRITES = 8, 4
"""Of a hidden neuron's tree where the user leaves its shape to us: the best for tables in docs/comparison.md."""


@dataclass(frozen=True)
class Trees:
    """A layer of equal trees, not built yet."""

    in_features: int
    out_features: int
    branching: Any
    fan_in: int | None
    """None where the wiring or the tree's own shape says it."""
    wiring: Wiring
    bias: bool
    shape: str
    """The tree for people: children of a node at every level, leaf level first, or for all levels."""
    edges: int
    """Of all trees."""
    nodes: int

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return self.edges + self.nodes * self.bias


@dataclass(frozen=True)
class Plan:
    """What takes the place of a part: trees, and the read-out of an MLP."""

    part: Part
    trees: tuple[Trees, ...]

    @property
    def readout_inputs(self) -> int | None:
        """Inputs of the linear read-out; None for a single layer, which has none."""
        return self.trees[-1].out_features if len(self.part) > 1 else None

    @property
    def parameters(self) -> int:
        """Of the new modules."""
        return sum(trees.parameters for trees in self.trees) + self._readout(bias=True)

    @property
    def multiply_adds(self) -> int:
        """Of the new modules for one input vector."""
        return sum(trees.edges for trees in self.trees) + self._readout(bias=False)

    def _readout(self, *, bias: bool) -> int:
        if self.readout_inputs is None:
            return 0
        last = self.part[-1]
        return last.out_features * (self.readout_inputs + (bias and last.bias is not None))


def plan_parts(
    parts: Sequence[Part], budget: float | int, wiring: Wiring, branching: Branching
) -> tuple[list[Plan], dict[str, str]]:
    """The largest trees within the budget, which is shared out in proportion to what the parts have now.

    Also the parts that cannot be so small, by the name of their first layer, with the reason. Their share goes to the
    others where the budget is a number.
    """
    reasons: dict[str, str] = {}
    while True:
        left = [part for part in parts if part[0].name not in reasons]
        now = sum(_parameters(part) for part in left)
        share = budget if isinstance(budget, float) else budget / max(now, 1)
        plans, refused = [], {}
        for part in left:
            allowance = math.floor(share * _parameters(part) + 1e-9)
            try:
                plans.append(_plan(part, allowance, wiring, branching))
            except DendritreeError as error:
                refused[part[0].name] = str(error)
        reasons |= refused
        if not refused:
            return plans, reasons


def _parameters(part: Part) -> int:
    return sum(perceptron.parameters for perceptron in part)


def _plan(part: Part, allowance: int, wiring: Wiring, branching: Branching) -> Plan:
    """The largest plan of at most `allowance` parameters."""
    if len(part) == 1:
        return _single(part, allowance, wiring, branching)
    shares = [perceptron.out_features / max(p.out_features for p in part[:-1]) for perceptron in part[:-1]]

    def plan(width: int) -> Plan:
        trees: list[Trees] = []
        inputs = part[0].in_features
        for perceptron, share in zip(part, shares, strict=False):
            neurons = max(1, round(share * width))
            # An image, or any order of the inputs, is there for the first layer only.
            each = Random() if trees else wiring
            shape, fan_in = _hidden_tree(branching, inputs, each)
            trees.append(_trees(inputs, neurons, shape, fan_in, each, perceptron.bias is not None))
            inputs = neurons
        return Plan(part, tuple(trees))

    return _largest(plan, allowance, least=2, most=None)


def _single(part: Part, allowance: int, wiring: Wiring, branching: Branching) -> Plan:
    """Trees in the place of one layer: as many neurons as before, so what is free is their fan-in."""
    (perceptron,) = part
    ins, outs = perceptron.in_features, perceptron.out_features
    free = wiring.any_fan_in and (branching == AUTO or isinstance(branching, int))

    def plan(fan_in: int) -> Plan:
        return Plan(
            part, (_trees(ins, outs, branching, fan_in if free else None, wiring, perceptron.bias is not None),)
        )

    return _largest(plan, allowance, least=min(2, ins), most=ins if free else min(2, ins))


def _largest(plan: Callable[[int], Plan], allowance: int, *, least: int, most: int | None) -> Plan:
    """The largest plan within an allowance, from a size that makes plans larger as it grows."""
    smallest = plan(least)
    if smallest.parameters > allowance:
        raise OptionError(f"trees here have at least {smallest.parameters:,} parameters: its budget is {allowance:,}")

    def fits(size: int) -> bool:
        try:
            return plan(size).parameters <= allowance
        except ShapeError:  # `partition` takes only numbers of neurons that divide the inputs
            return False

    low, high = least, 2 * least if most is None else most + 1
    while most is None and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return plan(low)


def _hidden_tree(branching: Branching, inputs: int, wiring: Wiring) -> tuple[Any, int | None]:
    """Shape and fan-in of a hidden neuron: as asked for; by default a few dendrites with a few synapses each."""
    if not wiring.any_fan_in or not (branching == AUTO or isinstance(branching, int)):
        return branching, None
    if branching == AUTO:
        return (max(2, min(inputs, SYNAPSES)), DENDRITES), None
    return branching, min(inputs, SYNAPSES * DENDRITES)


def _trees(ins: int, outs: int, branching: Any, fan_in: int | None, wiring: Wiring, bias: bool) -> Trees:
    """A layer of trees as `DendriticLayer` would grow them."""
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
    return Trees(ins, outs, branching, fan_in, wiring, bias, str(shape), outs * edges, outs * nodes)
