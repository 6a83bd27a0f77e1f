"""Messages for the user on standard error, each on one line whatever its text contains."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from typing import TextIO

MOST_CHARACTERS = 600
"""Maximum length of a message: about eight lines on a narrow screen, enough for a rule, a value and two paths."""


def tell(message: object) -> None:
    """Print one line, with the prefix `dendritree: `, on standard error.

    A message may contain anything from a file: line ends, terminal escape codes, very long names.

    >>> one_line("rows must be\\nnumbers: got \\x1b[2J")
    'rows must be numbers: got \\\\x1b[2J'
    """
    write_error(f"dendritree: {one_line(message)}\n")


def print_next(*words: object) -> None:
    """Print the sensible next command after a long one, ready to be copied.

    >>> print_next("view", "my models/tuned")
    next:   dendritree view 'my models/tuned'
    """
    print(f"next:   dendritree {shlex.join(map(str, words))}")


def one_line(message: object) -> str:
    """A text on one line, with only printable characters, truncated if it is too long."""
    text = " ".join(str(message).split())
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 4]} ..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def write_error(text: str) -> None:
    """Write to standard error. If that fails, only the exit status remains."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Drop buffered output: it cannot be written, and Python would try again at exit and report an error."""
    with contextlib.suppress(OSError, ValueError):  # in a notebook there may be no file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
