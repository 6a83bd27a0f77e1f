"""Lines for the user on standard error: each is one line, whatever text it is made of."""

from __future__ import annotations

import sys

MOST_CHARACTERS = 600
"""Of a line, at most: about eight on a narrow screen, and room for a rule, a value and two paths."""


def tell(message: object) -> None:
    """Print one line of ours on standard error.

    A message may hold anything that is in a file: line ends, codes that a terminal obeys, names without end.

    >>> one_line("rows must be\\nnumbers: got \\x1b[2J")
    'rows must be numbers: got \\\\x1b[2J'
    """
    print(f"dendritree: {one_line(message)}", file=sys.stderr, flush=True)


def one_line(message: object) -> str:
    """A text on one line, of characters that print, cut off where it is too long."""
    text = " ".join(str(message).split())
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 4]} ..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
