"""A forest prepared for a device: the tables of each backend, built on first use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..tree import Forest
from .dropout import synapse_pairs
from .eager import Layout, make_layout
from .program import Program, make_program

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """A forest prepared for one device."""

    forest: Forest
    device: torch.device

    @cached_property
    def layout(self) -> Layout:
        """The tables of the eager backend."""
        return make_layout(self.forest, self.device)

    @cached_property
    def program(self) -> Program:
        """The tables of the fused backend."""
        return make_program(self.forest)

    @cached_property
    def ties(self) -> tuple[Tensor, Tensor] | None:
        """The weight index of each edge and the bias index of each node; None for a forest without tied nodes."""
        if self.forest.template is None:
            return None
        edges, nodes = self.forest.weight_of_edge, self.forest.bias_of_node
        return torch.as_tensor(edges, device=self.device), torch.as_tensor(nodes, device=self.device)

    @cached_property
    def pairs(self) -> Tensor:
        """The synapse pairs for dropout outside the fused backend."""
        return synapse_pairs(self.forest, self.device)


def make_plan(forest: Forest, device: torch.device | str = "cpu") -> Plan:
    """Prepare a forest for a device. The tables are built here, so that a compiler does not trace their construction.

    >>> make_plan(Forest.grow(2, fan_in=4)).layout.chained
    True
    """
    plan = Plan(forest, torch.device(device))
    _ = plan.layout, plan.pairs, plan.ties, forest.weights, forest.biases
    if plan.device.type == "cpu":
        _ = plan.program
    return plan
