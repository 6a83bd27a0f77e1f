"""`dendritree models`: list them."""

from __future__ import annotations

import argparse

from ..errors import OptionError
from .command import Command

__all__ = ["MODELS"]


def _models(arguments: argparse.Namespace) -> None:
    """List the registered models."""
    from ..models.registry import list_models, model_entry

    names = list_models(arguments.pattern)
    if not names:
        raise OptionError(f"no model matches {arguments.pattern!r}: known are {', '.join(list_models())}")
    width = max(map(len, names))
    for name in names:
        print(f"{name:{width}}  {model_entry(name).summary}")


MODELS = Command(
    "list the models by name",
    "dendritree models 'conv-*'",
    _models,
    [(("pattern",), {"nargs": "?", "default": "*", "help": "shell pattern (default: all)"})],
)
