"""The `dendritree` command: a table of commands, one file per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from dendritree import __version__
from dendritree.errors import DendritreeError, nearest

from . import compare, data, export, figures, fit, models, params, predict, report, reproduce, tune, view
from .completion import completions, line_to_complete
from .messages import tell
from .options import Arguments, Option

__all__ = ["COMMANDS", "main", "make_parser", "usage_of"]


class Command(Protocol):
    """The interface of a command's module; the module is named after the command."""

    __name__: str
    OPTIONS: list[Option]
    EXAMPLES: str
    """Command lines, one per line."""

    def run(self, arguments: Arguments, /) -> int | None:
        """Run the command. Its docstring is the help text. Returns an exit status; None is 0."""


_FILES: list[Command] = [params, models, data, reproduce, report, compare, view, fit, predict, tune, export, figures]
COMMANDS = {file.__name__.rpartition(".")[2]: file for file in _FILES}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest the command or option that was probably meant."""

    commands: Sequence[str] = ()
    """The names of its commands; a command's own parser has none."""
    options: Sequence[str] = ()
    """The names of its options, with their dashes."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject an unknown word here, where its command is known, before argparse reports missing arguments."""
        words = list(sys.argv[1:] if args is None else args)
        if self.commands and words and not words[0].startswith("-") and words[0] not in self.commands:
            near = nearest(words[0], self.commands)
            hint, help_of = (f"; did you mean {near!r}?", f" {near}") if near else ("", "")
            self.exit(2, f"{self.prog}: unknown command {words[0]!r}{hint} (see {self.prog}{help_of} --help)\n")
        for word in words[:1] if self.commands else words:
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in self.options):
                near = nearest(name, self.options)
                self.error(f"unknown option {name!r}{f'; did you mean {near}?' if near else ''}")
        arguments, unknown = super().parse_known_args(words, namespace)
        if unknown and not self.commands:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments, unknown

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to get help; exit with status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def usage_of(name: str) -> str:
    """The usage line of a command.

    >>> usage_of("report")
    'dendritree report RUN [options]'
    """
    return " ".join(dict.fromkeys(["dendritree", name, *(option.usage for option in COMMANDS[name].OPTIONS)]))


def make_parser() -> Parser:
    """The parser of all commands."""
    layout: Any = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="dendritree",
        usage="dendritree [--help] [--version] COMMAND ...",
        epilog="example:\n  dendritree params 1024 10 --branching 32",
        formatter_class=layout,
    )
    parser.commands, parser.options = tuple(COMMANDS), ("--help", "--version")
    parser.add_argument("--version", action="version", version=f"dendritree {__version__}")
    # argparse leaves no room for the indentation of commands: the metavar is as long as the longest indented name.
    subparsers = parser.add_subparsers(
        title="dendritic-tree neurons for PyTorch", dest="command", metavar="COMMAND ..."
    )
    for name, command in COMMANDS.items():
        about = command.run.__doc__ or ""
        sub = subparsers.add_parser(
            name,
            prog=f"dendritree {name}",
            help=about[:1].lower() + about[1:].rstrip("."),
            description=about,
            epilog="\n  ".join(["example:", *command.EXAMPLES.splitlines()]),
            formatter_class=layout,
            usage=usage_of(name),
        )
        sub.options = ("--help", *(option.name for option in command.OPTIONS if not option.by_position))
        for option in command.OPTIONS:
            option.add_to(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 2 after a user error or an invalid file, 130 after Ctrl-C.

    >>> main(["models", "conv-ml*"])
    conv-mln  The appendix CNN with dendritic neurons as its classifier.
    conv-mlp  The appendix CNN with the control MLP as its classifier.
    0
    """
    try:
        return _run(argv)
    except KeyboardInterrupt as stop:  # commands that can be resumed say so
        tell(str(stop) or "interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output has exited, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would flush to the pipe at exit
        return 1
    except DendritreeError as error:
        tell(error)
    except MemoryError as error:
        tell(f"not enough memory: {error}")
    except ImportError as error:
        tell(f"could not import {error.name}: {error}")
    except OSError as error:
        tell(f"{error.strerror or error}: {error.filename}" if error.filename else error)
    return 2


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        if line := line_to_complete():
            print("\n".join(completions(line, COMMANDS)))
            return 0
        arguments = parser.parse_args(argv, Arguments())
        if arguments.command is None:
            parser.print_help()
            return 0
        return COMMANDS[arguments.command].run(arguments) or 0
    finally:
        sys.stdout.flush()  # here, where a broken pipe is caught, not at exit
