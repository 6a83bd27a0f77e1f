"""A layer whose trees run by a plan, which lives where the weights do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from torch import Tensor, nn

from .. import ops
from ..tree import Forest

__all__ = ["PlannedLayer"]


class PlannedLayer(nn.Module):
    """`nn.Module` with a `weight` and the plan of a forest, which follows the weight from device to device."""

    weight: nn.Parameter
    _plan: ops.Plan

    def _make_plan(self, forest: Forest) -> None:
        self._plan = ops.make_plan(forest, self.weight.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `.to()`, `.cuda()`, `to_empty()`: the plan is remade where the weights now are."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._follow_device()
        return self

    def _follow_device(self) -> None:
        if self._plan.device != self.weight.device:
            self._make_plan(self._plan.forest)
