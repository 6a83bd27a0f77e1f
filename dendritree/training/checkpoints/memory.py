"""What an optimizer remembers of each parameter, as named tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["optimizer_tensors", "put_optimizer_tensors"]


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory of each parameter, by the parameter's number and the memory's name."""
    return {
        f"{number}.{name}": value
        for number, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def put_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer the memory that `optimizer_tensors` told."""
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        parameter = parameters[int(number)]
        is_count = name == "step"  # torch keeps counts of steps on the CPU
        optimizer.state[parameter][name] = value if is_count else value.to(parameter.device)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
