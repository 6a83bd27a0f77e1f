"""Activations by name, class or instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import nn

from ..errors import OptionError, check_one_of

Activation: TypeAlias = str | type[nn.Module] | nn.Module | None
"""An elementwise activation: a name, an `nn.Module` class or instance, or None."""

NAMED_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "leaky_relu": lambda: nn.LeakyReLU(0.1),  # the paper's slope, not PyTorch's 0.01
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "none": nn.Identity,
}
"""Activations by name."""


def make_activation(activation: Activation) -> nn.Module:
    """The module of an activation given by name, class or instance; `nn.Identity` for None.

    >>> make_activation("leaky_relu"), make_activation(None), make_activation(nn.ELU)
    (LeakyReLU(negative_slope=0.1), Identity(), ELU(alpha=1.0))
    """
    if activation is None:
        return nn.Identity()
    if isinstance(activation, nn.Module):
        return activation
    if isinstance(activation, type) and issubclass(activation, nn.Module):
        return activation()
    if isinstance(activation, str):
        return NAMED_ACTIVATIONS[check_one_of("activation", activation, NAMED_ACTIVATIONS)]()
    raise OptionError(f"activation must be a name, an nn.Module class or instance, or None: got {activation!r}")
