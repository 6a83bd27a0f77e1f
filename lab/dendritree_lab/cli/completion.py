"""Shell completion: `complete -o default -C dendritree dendritree` in bash makes the shell call this command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def line_to_complete() -> str | None:
    """The line up to the cursor, if a shell requests completions; bash sets these variables."""
    line, point = os.environ.get("COMP_LINE"), os.environ.get("COMP_POINT", "")
    return line[: int(point)] if line and point.isdecimal() else None


def completions(line: str, commands: Mapping[str, Any]) -> list[str]:
    """The words that may complete a line; none where a file or a free value is expected, which shells complete.

    >>> from dendritree_lab.cli import COMMANDS
    >>> completions("dendritree re", COMMANDS), completions("dendritree figures --format ", COMMANDS)
    (['reproduce', 'report'], ['svg', 'png', 'pdf'])
    """
    *before, last = line.split(" ")
    words = [word for word in before if word][1:]
    if not words:
        known = [*commands, "--help", "--version"]
    elif words[0] not in commands:
        known = []
    else:
        options = {option.name: option for option in commands[words[0]].OPTIONS}
        expected = [options[words[-1]]] if words[-1] in options else [o for o in options.values() if o.by_position]
        known = [value for option in expected for value in option.settings.get("choices") or ()]
        if last.startswith("-"):
            known = [*options, "--help"]
    return [word for word in known if word.startswith(last)]
