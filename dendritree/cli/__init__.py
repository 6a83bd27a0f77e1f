"""The `dendritree` command: thin, a table of commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from ..errors import DendritreeError
from .command import Command
from .compare import COMPARE
from .data import DATA
from .export import EXPORT
from .figures import FIGURES
from .fit import FIT
from .models import MODELS
from .params import PARAMS
from .predict import PREDICT
from .report import REPORT
from .reproduce import REPRODUCE
from .tune import TUNE
from .view import VIEW

__all__ = ["COMMANDS", "main", "make_parser"]

COMMANDS: dict[str, Command] = {
    "params": PARAMS,
    "models": MODELS,
    "data": DATA,
    "reproduce": REPRODUCE,
    "report": REPORT,
    "compare": COMPARE,
    "view": VIEW,
    "fit": FIT,
    "predict": PREDICT,
    "tune": TUNE,
    "export": EXPORT,
    "figures": FIGURES,
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for the longest command's name: argparse forgets that the list of commands is indented."""

    def add_argument(self, action: argparse.Action) -> None:
        """Count the width of an argument, and of the commands if it is theirs."""
        super().add_argument(action)
        if action.nargs == argparse.PARSER:
            self._action_max_length = max(self._action_max_length, 4 + max(map(len, COMMANDS)))


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="dendritree",
        epilog="example:\n  dendritree params 1024 10 --branching 32",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dendritree {__version__}")
    subparsers = parser.add_subparsers(title="dendritic-tree neurons for PyTorch", dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = subparsers.add_parser(
            name,
            help=command.help,
            description=command.help.capitalize() + ".",
            epilog="\n  ".join(filter(None, ["example:", command.example, command.network_example])),
            formatter_class=HelpFormatter,
            usage=command.usage or None,
        )
        for flags, options in command.arguments:
            sub.add_argument(*flags, **options)  # type: ignore[arg-type]
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
    except KeyboardInterrupt:
        print("dendritree: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; what is still buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help()
        else:
            return COMMANDS[arguments.command].run(arguments) or 0
    finally:
        sys.stdout.flush()  # here, where a closed pipe is caught, and not at exit
    return 0
