"""Models as large as a parameter budget allows, and the parsing of budgets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from torch import nn

from ..errors import OptionError, check_int
from .registry import create_model


def parameters_of(model: nn.Module) -> int:
    """The number of a model's parameters, each counted once.

    >>> parameters_of(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters())


UNITS = {"": 1, "k": 1000, "K": 1000, "M": 1_000_000}


def parse_count(name: str, text: str | int) -> int:
    """Parse a number of parameters.

    >>> parse_count("budget", "9k"), parse_count("budget", "1.5M"), parse_count("budget", 800)
    (9000, 1500000, 800)
    """
    if isinstance(text, str):
        parts = re.fullmatch(r"([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,12})?([kKM]?)", text.strip())
        number = Decimal(parts[1].replace(",", "") + (parts[2] or "")) * UNITS[parts[3]] if parts else None
        if number is None or number != int(number):
            raise OptionError(
                f"{name} must be an integer number of parameters, such as 9000, 9k or 1.5M: got {text!r:.60}"
            )
        text = int(number)
    return check_int(name, text)


def check_budget(budget: float | int | str) -> float | int:
    """Check a budget: a share of the current parameters as a float in (0, 1], or a number of parameters.

    >>> check_budget(0.5), check_budget("9k")
    (0.5, 9000)
    """
    if isinstance(budget, float):
        if not 0.0 < budget <= 1.0:
            raise OptionError(f"budget must be a share in (0, 1] or an integer number of parameters: got {budget!r}")
        return budget
    return parse_count("budget", budget)


def fill_budget(network: str, config: Mapping[str, Any], shape: Sequence[float], budget: int) -> list[int] | None:
    """The widest hidden layers, in about these proportions, that keep a model within a budget; None if width 2 does not
    fit.

    >>> fill_budget("dense-network", {"in_features": 784, "out_features": 10}, (1.0,), 8000)
    [10]
    >>> fill_budget("dense-network", {"in_features": 16, "out_features": 10}, (1.0, 2.0), 1000)
    [14, 30]
    """

    def parameters(hidden: Sequence[int]) -> int:
        return parameters_of(create_model(network, **config, hidden=list(hidden), device="meta"))

    def layers(width: int) -> list[int]:
        return [max(1, round(share * width)) for share in shape]

    width = widest(lambda width: parameters(layers(width)), budget, least=2)
    if width is None:
        return None
    hidden = layers(width)
    while len(hidden) > 1:  # the rest of the budget widens one layer after the other, the last first
        wider = [[*hidden[:at], hidden[at] + 1, *hidden[at + 1 :]] for at in reversed(range(len(hidden)))]
        fitting = [each for each in wider if parameters(each) <= budget and _is_near(each, shape)]
        if not fitting:
            break
        hidden = fitting[0]
    return hidden


def _is_near(hidden: Sequence[int], shape: Sequence[float]) -> bool:
    """Whether no layer is more than one unit wider than the narrowest one's share would have it."""
    width = min((units + 1) / share for units, share in zip(hidden, shape, strict=True))
    return all(units <= share * width + 1 for units, share in zip(hidden, shape, strict=True))


def widest(parameters: Callable[[int], int], budget: int, *, least: int = 1) -> int | None:
    """The largest width whose parameters are within a budget; None if `least` is too large.

    >>> widest(lambda width: 10 + 3 * width, 100), widest(lambda width: 10 + 3 * width, 12)
    (30, None)
    """
    low, fewest = least, parameters(least)
    if fewest > budget:
        return None
    # Parameters grow at least linearly with the width: the line through two widths can only overshoot.
    slope = parameters(low + 1) - fewest
    high = low + (budget - fewest) // max(1, slope) + 1
    while parameters(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parameters(middle) <= budget else (low, middle)
    return low
