"""Completion of command lines by the shell, which asks us: `complete -o default -C dendritree dendritree` in bash."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from .options import Option


class HasOptions(Protocol):
    """A command, as far as completion is concerned."""

    OPTIONS: list[Option]


def asked_line() -> str | None:
    """The line up to the cursor, if a shell asks for its completions; the variables are bash's."""
    line, point = os.environ.get("COMP_LINE"), os.environ.get("COMP_POINT", "")
    return line[: int(point)] if line and point.isdecimal() else None


def completions(line: str, commands: Mapping[str, HasOptions]) -> Sequence[str]:
    """The words that may end a line; none where only a file or a value of the user's can, as shells complete those.

    >>> from dendritree.cli import COMMANDS
    >>> completions("dendritree re", COMMANDS), completions("dendritree figures --format ", COMMANDS)
    (['reproduce', 'report'], ['svg', 'png', 'pdf'])
    """
    *before, last = line.split(" ")
    _, *words = [word for word in before if word] or [""]
    if not words:
        known = [*commands, "--help", "--version"]
    elif words[0] not in commands:
        known = []
    else:
        options = {option.name: option for option in commands[words[0]].OPTIONS}
        asked = [options[words[-1]]] if words[-1] in options else [o for o in options.values() if o.by_position]
        known = [choice for option in asked for choice in option.settings.get("choices") or ()]
        if last.startswith("-"):
            known = [*options, "--help"]
    return [word for word in known if word.startswith(last)]
