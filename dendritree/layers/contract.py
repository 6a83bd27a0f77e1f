"""What the layers of other authors' neurons check alike: numbers, types, and the rows of an input."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..errors import OptionError, ShapeError

__all__ = ["as_rows", "check_dtype", "check_number", "check_range"]


def check_number(name: str, value: Any, *, positive: bool = True) -> float:
    """Return `value` as a finite float, greater than 0 if `positive`, or say the rule.

    >>> check_number("k", 5)
    5.0
    """
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or (positive and number <= 0):
        raise OptionError(f"{name} must be a {'positive ' if positive else 'finite '}number: got {value!r}")
    return number


def check_dtype(dtype: Any) -> None:
    """Refuse what is no floating-point type of torch; None stands for torch's default.

    >>> check_dtype(torch.float64)
    """
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise OptionError(f"dtype must be a floating-point torch.dtype: got {dtype!r}")


def check_range(low: float | Tensor, high: float | Tensor, in_features: int) -> tuple[Tensor, Tensor]:
    """The least and greatest value of each input, in float64, from one number for all or one for each.

    >>> check_range(0.0, torch.tensor([1.0, 2.0]), 2)[1].tolist()
    [1.0, 2.0]
    """
    ends = []
    for name, end in (("low", low), ("high", high)):
        try:
            tensor = torch.as_tensor(end, dtype=torch.float64).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            raise OptionError(f"{name} must be a number or one for each input: got {end!r:.60}") from None
        if tensor.shape not in ((), (in_features,)):
            raise ShapeError(f"{name} must be a number or one for each of {in_features} inputs: got {end!r:.60}")
        ends.append(tensor.expand(in_features))
    if not (ends[0].isfinite() & ends[1].isfinite() & (ends[0] <= ends[1])).all():
        raise OptionError(f"low and high must be finite, low at most high: got {low!r:.60} and {high!r:.60}")
    return ends[0], ends[1]


def as_rows(x: Tensor, in_features: int, dtype: torch.dtype) -> Tensor:
    """An input of any leading dimensions as (samples, in_features), in the type of the weights.

    >>> as_rows(torch.zeros(2, 3, 4), 4, torch.float32).shape
    torch.Size([6, 4])
    """
    if x.dim() == 0 or x.shape[-1] != in_features:
        raise ShapeError(f"the last dimension of the input must be in_features {in_features}: got {tuple(x.shape)}")
    if x.dtype != dtype:
        if x.is_meta or not torch.is_autocast_enabled(x.device.type):
            raise OptionError(f"the input must have the type of the weights, {dtype}: got {x.dtype}")
        x = x.to(dtype)
    return x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)  # a count of rows would be a constant in an export
