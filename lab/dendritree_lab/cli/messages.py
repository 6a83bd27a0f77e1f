"""What commands print: messages on standard error, the next command to run, and columns of text."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

MOST_CHARACTERS = 600
"""Maximum length of a message: about eight lines on a narrow screen, enough for a rule, a value and two paths."""


def tell(message: object) -> None:
    """Print one line, with the prefix `dendritree: `, on standard error."""
    print(f"dendritree: {one_line(message)}", file=sys.stderr, flush=True)


def one_line(message: object) -> str:
    """A text on one line, with only printable characters: names in files may contain line breaks and terminal escapes.

    >>> one_line("x must be\\nfinite: got \\x1b[2J")
    'x must be finite: got \\\\x1b[2J'
    """
    text = " ".join(str(message).split())
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 4]} ..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def print_next(*words: object) -> None:
    """Suggest the next command after a long one, ready to be copied.

    >>> print_next("view", "my models/tuned")
    next:   dendritree view 'my models/tuned'
    """
    print(f"next:   dendritree {shlex.join(map(str, words))}")


def print_columns(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without wrapping: text left-aligned, integers right-aligned with thousands separators.

    >>> print_columns(("model", "parameters"), [("mln", 10_890), ("mlp", 850)])
    model  parameters
    mln        10,890
    mlp           850
    """
    cells = [header, *([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)]
    numeric = [any(isinstance(row[column], int) for row in rows) for column in range(len(header))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = (f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(line, widths, numeric, strict=True))
        print("  ".join(aligned).rstrip())
