"""A DNM read as logic: comparisons joined by and, dendrites joined by or, as text and as a function."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ShapeError
from .dnm_pruning import STATES, SynapseTable, synapse_states


@dataclass(frozen=True)
class Literal:
    """A synapse as a switch: an input above or below a value."""

    source: int
    above: bool
    value: float


@dataclass(frozen=True)
class Branch:
    """A dendrite: what it adds to V where all its literals hold."""

    scale: float
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Logic:
    """The rules of a layer's neurons, from `DNM.logic`. Print it, or call it on inputs and compare with the layer.

    >>> rule = Logic((((Branch(1.0, (Literal(0, True, 0.5), Literal(1, False, 0.25)))),),), 0.5, ("age", "dose"))
    >>> print(rule)
    neuron 0 = age > 0.5 and dose < 0.25
    >>> rule(torch.tensor([[0.9, 0.1], [0.9, 0.9]])).tolist()
    [[True], [False]]
    """

    neurons: tuple[tuple[Branch, ...], ...]
    """The dendrites of each neuron that can be above 0."""
    threshold: float
    """A neuron fires where its dendrites add up to more than this."""
    names: tuple[str, ...]
    """Names of the inputs."""

    def __call__(self, x: Tensor) -> Tensor:
        """Whether each neuron fires, shape (..., neurons), for inputs of shape (..., inputs)."""
        if x.dim() == 0 or x.shape[-1] != len(self.names):
            raise ShapeError(f"the last dimension of the input must be {len(self.names)}: got {tuple(x.shape)}")
        fires = []
        for branches in self.neurons:
            v = torch.zeros(x.shape[:-1], dtype=torch.float64, device=x.device)
            for branch in branches:
                holds = torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)
                for literal in branch.literals:
                    value = x[..., literal.source]
                    holds &= value > literal.value if literal.above else value < literal.value
                v += branch.scale * holds
            fires.append(v > self.threshold)
        return torch.stack(fires, -1)

    def __str__(self) -> str:
        return "\n".join(f"neuron {n} = {self._rule(branches)}" for n, branches in enumerate(self.neurons))

    def _rule(self, branches: tuple[Branch, ...]) -> str:
        total = math.fsum(branch.scale for branch in branches)
        if self.threshold < 0:
            return "always"
        if total <= self.threshold:
            return "never"
        terms = [self._conjunction(branch) for branch in branches]
        if all(branch.scale > self.threshold for branch in branches):
            if any(not branch.literals for branch in branches):
                return "always"
            terms = [self._conjunction(branch) for branch in _without_implied(branches)]
            return terms[0] if len(terms) == 1 else " or ".join(map(_in_brackets, terms))
        if all(total - branch.scale <= self.threshold for branch in branches):
            kept = dict.fromkeys(term for term, branch in zip(terms, branches, strict=True) if branch.literals)
            return " and ".join(kept) or "always"
        if all(branch.scale == 1.0 for branch in branches):
            return f"at least {math.floor(self.threshold) + 1} of: {', '.join(terms)}"
        weighted = (f"{b.scale:.3g} {_in_brackets(t)}" for t, b in zip(terms, branches, strict=True))
        return f"{' + '.join(weighted)} > {self.threshold:.3g}"

    def _conjunction(self, branch: Branch) -> str:
        parts = (f"{self.names[each.source]} {'>' if each.above else '<'} {each.value:.3g}" for each in branch.literals)
        return " and ".join(parts) or "always"


def _implies(one: Branch, other: Branch) -> bool:
    """Whether all literals of `other` hold wherever those of `one` do."""
    return all(
        any(
            a.source == b.source and a.above == b.above and (a.value >= b.value if b.above else a.value <= b.value)
            for a in one.literals
        )
        for b in other.literals
    )


def _without_implied(branches: tuple[Branch, ...]) -> list[Branch]:
    """The branches that are not redundant in an "or" with the others; of equal ones, the first is kept."""
    return [
        branch
        for i, branch in enumerate(branches)
        if not any(
            _implies(branch, other) and (j < i or not _implies(other, branch))
            for j, other in enumerate(branches)
            if j != i
        )
    ]


def _in_brackets(term: str) -> str:
    return f"({term})" if " and " in term else term


def read_logic(
    table: SynapseTable, k: float, threshold: float, neurons: int, names: tuple[str, ...], low: Tensor, high: Tensor
) -> Logic:
    """The logic of a table's synapses over a range: constant 1 is left out, constant 0 silences its dendrite."""
    states = synapse_states(table, k, low, high).tolist()
    literals: list[list[Literal]] = [[] for _ in table.neuron]
    silent = [False] * len(table.neuron)
    columns = (table.dendrite.tolist(), table.source.tolist(), table.weight.tolist(), table.threshold.tolist())
    for state, dendrite, source, weight, shift in zip(states, *columns, strict=True):
        if STATES[state] == "constant 0":
            silent[dendrite] = True
        elif STATES[state] != "constant 1":
            literals[dendrite].append(Literal(source, STATES[state] == "direct", shift / weight))
    rules: list[list[Branch]] = [[] for _ in range(neurons)]
    for dendrite, (neuron, scale) in enumerate(zip(table.neuron.tolist(), table.log_scale.exp().tolist(), strict=True)):
        if not silent[dendrite]:
            rules[neuron].append(Branch(scale, tuple(literals[dendrite])))
    return Logic(tuple(map(tuple, rules)), threshold, names)
