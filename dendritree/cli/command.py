"""What a command of the command line is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """One sub-command: what it does, an example, its arguments and its function."""

    help: str
    example: str
    """Command lines that work on any machine: the tests run them."""
    run: Callable[[argparse.Namespace], int | None]
    """Returns an exit status; None is 0."""
    arguments: Sequence[tuple[tuple[str, ...], dict[str, object]]]
    usage: str = ""
    """The first line of the help; argparse's own if empty, which takes four lines where there are many options."""
    network_example: str = ""
    """Command lines that fetch or write something, shown after the others."""
