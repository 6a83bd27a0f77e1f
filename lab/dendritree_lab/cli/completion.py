"""Shell completion: `complete -o default -C dendritree dendritree` in bash makes the shell call this command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from .options import Option


class HasOptions(Protocol):
    """The part of a command that completion needs."""

    OPTIONS: list[Option]


def asked_line() -> str | None:
    """The line up to the cursor, if a shell requests completions; the variables are set by bash."""
    line, point = os.environ.get("COMP_LINE"), os.environ.get("COMP_POINT", "")
    return line[: int(point)] if line and point.isdecimal() else None


def completions(line: str, commands: Mapping[str, HasOptions]) -> Sequence[str]:
    """The words that may complete a line; none where a file or a free value is expected, which shells complete.

    >>> from dendritree_lab.cli import COMMANDS
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
