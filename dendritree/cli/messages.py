"""Lines for the user on standard error: each is one line, whatever text it is made of."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from typing import TextIO

MOST_CHARACTERS = 600
"""Of a line, at most: about eight on a narrow screen, and room for a rule, a value and two paths."""


def tell(message: object) -> None:
    """Print one line of ours on standard error.

    A message may hold anything that is in a file: line ends, codes that a terminal obeys, names without end.

    >>> one_line("rows must be\\nnumbers: got \\x1b[2J")
    'rows must be numbers: got \\\\x1b[2J'
    """
    write_error(f"dendritree: {one_line(message)}\n")


def print_next(*words: object) -> None:
    """Print the command that makes sense after a long one has ended, ready to be copied.

    >>> print_next("view", "my models/tuned")
    next:   dendritree view 'my models/tuned'
    """
    print(f"next:   dendritree {shlex.join(map(str, words))}")


def one_line(message: object) -> str:
    """A text on one line, of characters that print, cut off where it is too long."""
    text = " ".join(str(message).split())
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 4]} ..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def write_error(text: str) -> None:
    """Write to standard error. Where that cannot be, the exit status has to say it all."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Drop what is still buffered: it cannot be written, and Python would try again at its end and complain."""
    with contextlib.suppress(OSError, ValueError):  # in a notebook there may be no file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
