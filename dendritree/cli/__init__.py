"""The `dendritree` command: a table of sub-commands, one file per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

from .. import __version__
from ..errors import DendritreeError
from . import compare, data, export, figures, fit, models, params, predict, report, reproduce, tune, view
from .options import Arguments, Option

__all__ = ["COMMANDS", "main", "make_parser"]


class Command(Protocol):
    """What the file of a command defines; the file's name is the command's."""

    __name__: str
    OPTIONS: list[Option]
    EXAMPLES: str
    """Command lines, one per line."""

    def run(self, arguments: Arguments, /) -> int | None:
        """Its docstring is the help. Returns an exit status; None is 0."""


_FILES: list[Command] = [params, models, data, reproduce, report, compare, view, fit, predict, tune, export, figures]
COMMANDS = {file.__name__.rpartition(".")[2]: file for file in _FILES}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for the longest name of a command: argparse forgets that the list of commands is indented."""

    def add_argument(self, action: argparse.Action) -> None:
        """Measure an argument, and the names of the commands if it is theirs."""
        super().add_argument(action)
        if action.nargs == argparse.PARSER:
            self._action_max_length = max(self._action_max_length, 4 + max(map(len, COMMANDS)))


def make_parser() -> Parser:
    """The parser of all commands."""
    example = "example:\n  dendritree params 1024 10 --branching 32"
    parser = Parser(prog="dendritree", epilog=example, formatter_class=HelpFormatter)
    parser.add_argument("--version", action="version", version=f"dendritree {__version__}")
    subparsers = parser.add_subparsers(title="dendritic-tree neurons for PyTorch", dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        about = command.run.__doc__ or ""
        sub = subparsers.add_parser(
            name,
            help=about[:1].lower() + about[1:].rstrip("."),
            description=about,
            epilog="\n  ".join(["example:", *command.EXAMPLES.splitlines()]),
            formatter_class=HelpFormatter,
            usage=" ".join(dict.fromkeys(["dendritree", name, *(option.usage for option in command.OPTIONS)])),
        )
        for option in command.OPTIONS:
            option.add_to(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    >>> main(["models", "conv-*"])
    conv-dnm          The appendix CNN with DNM neurons as its classifier.
    conv-mln          The appendix CNN with dendritic neurons as its classifier.
    conv-mlp          The appendix CNN with the control MLP as its classifier.
    conv-perceptrons  The appendix CNN with one linear unit per class as its classifier.
    0
    """
    try:
        return _run(argv)
    except DendritreeError as error:
        print(f"dendritree: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"dendritree: not enough memory: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:  # a command that can be resumed says so
        print(f"dendritree: {str(stop) or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; what is still buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        arguments = parser.parse_args(argv, Arguments())
        if arguments.command is None:
            parser.print_help()
            return 0
        return COMMANDS[arguments.command].run(arguments) or 0
    finally:
        sys.stdout.flush()  # here, where a closed pipe is caught, and not at exit
