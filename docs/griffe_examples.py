"""Make the `>>>` examples of docstrings code blocks, so that the site shows them as what they are."""

from __future__ import annotations

import re
from typing import Any

import griffe


class FencedExamples(griffe.Extension):
    """Fences around every doctest."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of anything that has one."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its doctests in fences: from `>>>` to the next empty line."""
    lines: list[str] = []
    indent: str | None = None
    for line in [*text.splitlines(), ""]:
        start = re.match(r"( *)>>> ", line)
        if indent is None and start:
            indent = start[1]
            lines.append(f"{indent}```pycon")
        elif indent is not None and not line.strip():
            lines.append(f"{indent}```")
            indent = None
        lines.append(line)
    return "\n".join(lines).rstrip()
