"""The `dendritree` command: a table of commands, one file per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn, Protocol

from dendritree import __version__
from dendritree.errors import DendritreeError, nearest

from . import compare, data, export, figures, fit, models, params, predict, report, reproduce, tune, view
from .completion import asked_line, completions
from .messages import discard, tell, write_error
from .options import Arguments, Option

__all__ = ["COMMANDS", "main", "make_parser"]

TRACEBACK = "DENDRITREE_TRACEBACK"
"""The environment variable that shows the traceback of an unexpected error."""
FAULT = 70
"""The exit status after such an error, as in sysexits.h; 2 is for mistakes of the user or in a file."""


class Command(Protocol):
    """What the file of a command defines; the name of the file is that of the command."""

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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject an unknown word here, where its command is known, before argparse reports missing arguments."""
        words = list(sys.argv[1:] if args is None else args)
        if self.commands and words and not words[0].startswith("-"):
            self._check_command(words[0])
        for word in words[:1] if self.commands else takewhile(lambda word: word != "--", words):
            self._check_option(word.partition("=")[0])
        found, unknown = super().parse_known_args(words, namespace)
        if unknown and not self.commands:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _check_command(self, word: str) -> None:
        if word not in self.commands:
            near = nearest(word, self.commands)
            hint, help_of = (f"; did you mean {near!r}?", f" {near}") if near else ("", "")
            self.exit(2, f"{self.prog}: no command {word!r}{hint} (see {self.prog}{help_of} --help)\n")

    def _check_option(self, word: str) -> None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        if word.startswith("--") and not any(name.startswith(word) for name in known):  # abbreviations are allowed
            near = nearest(word, known)
            self.error(f"no option {word!r}{f'; did you mean {near}?' if near else ''}")

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to get help; exit with status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a help text or an error; argparse itself would ignore a full disk and exit with status 0."""
        if file is sys.stderr:
            write_error(message)
        else:
            print(message, end="", file=file)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for the longest command name: argparse does not account for the indented list of commands."""

    def add_argument(self, action: argparse.Action) -> None:
        """Measure an argument, and the names of the commands if it is the list of commands."""
        super().add_argument(action)
        if action.nargs == argparse.PARSER:
            self._action_max_length = max(self._action_max_length, 4 + max(map(len, COMMANDS)))


def usage_of(name: str) -> str:
    """The usage line of a command.

    >>> usage_of("report")
    'dendritree report RUN [options]'
    """
    return " ".join(dict.fromkeys(["dendritree", name, *(option.usage for option in COMMANDS[name].OPTIONS)]))


def make_parser() -> Parser:
    """The parser of all commands."""
    example = "example:\n  dendritree params 1024 10 --branching 32"
    parser = Parser(prog="dendritree", epilog=example, formatter_class=HelpFormatter)
    parser.commands = tuple(COMMANDS)
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
            usage=usage_of(name),
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
    conv-network      One convolution, plain or dendritic, pooling and a linear read-out.
    conv-perceptrons  The appendix CNN with one linear unit per class as its classifier.
    0
    """
    try:
        return _run(argv)
    except DendritreeError as error:
        tell(error)
        return 2
    except KeyboardInterrupt as stop:  # commands that can be resumed say so
        tell(str(stop) or "interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output has exited, as `head` does
        discard(sys.stdout)
        discard(sys.stderr)
        return 1
    except MemoryError as error:
        tell(f"not enough memory: {error}")
        return 2
    except ImportError as error:
        tell(f"could not import {error.name}: {error}")
        return 2
    except OSError as error:
        discard(sys.stdout)
        tell(f"{error.strerror or error}: {os.fsdecode(error.filename)!r:.300}" if error.filename else str(error))
        return 2
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        tell(f"this is a bug in dendritree: {type(error).__name__}: {error}; {TRACEBACK}=1 shows where it is")
        return FAULT


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        if line := asked_line():
            print("\n".join(completions(line, COMMANDS)))
            return 0
        arguments = parser.parse_args(argv, Arguments())
        if arguments.command is None:
            parser.print_help()
            return 0
        return COMMANDS[arguments.command].run(arguments) or 0
    finally:
        sys.stdout.flush()  # here, where a closed pipe is caught, not at exit
