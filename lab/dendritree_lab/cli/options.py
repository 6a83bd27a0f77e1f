"""Command-line options, each declared on one line, and those shared by several commands."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..data.split import DataSplit
    from ..studies.engine.runner import Workers


class Arguments(argparse.Namespace):
    """The parsed options of a command."""

    def only(self, *names: str) -> dict[str, Any]:
        """Some of the values, as keyword arguments."""
        return {name: getattr(self, name) for name in names}


class Option:
    """One argument of a command.

    Args:
        words: the name and the value, in the notation of usage lines: `--trials N`, `--force` (a switch),
            `--budgets N ...` (one or more), `--format svg|png` (one of these); without dashes, a positional argument:
            `model MODEL`, `file [FILE]` (optional), `tasks [DATA ...]` (any number).
        help: the help text; the default is appended unless the text mentions it.
        default: the value if the argument is absent; also determines the type.
        more: further arguments of `argparse.ArgumentParser.add_argument`.

    >>> parser = argparse.ArgumentParser()
    >>> for option in (Option("tasks [DATA ...]", "data sets"), Option("--trials N", "trials per model", 16)):
    ...     option.add_to(parser)
    >>> parser.parse_args(["mnist", "--trials", "3"])
    Namespace(tasks=['mnist'], trials=3)
    """

    def __init__(self, words: str, help: str, default: object = None, **more: Any) -> None:  # noqa: A002
        self.name, _, value = words.partition(" ")
        self.by_position = not self.name.startswith("-")
        self.usage = value if self.by_position else words if more.get("required") else "[options]"
        shown = f" (default: {default})" if default is not None and "default" not in help else ""
        self.settings: dict[str, Any] = {"help": help + shown}
        if value:
            metavar, many = value.strip("[] ."), value.rstrip("]").endswith("...")
            self.settings |= {"metavar": metavar, "default": default, "type": str if default is None else type(default)}
            self.settings["nargs"] = ("*" if many else "?") if value.startswith("[") else ("+" if many else None)
            self.settings["choices"] = metavar.split("|") if "|" in metavar else None
        else:
            self.settings["action"] = "store_true"
        self.settings |= more

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add this argument to a parser."""
        parser.add_argument(self.name, **self.settings)


DATA_HELP = "built-in name (dendritree data list), .npz, x.npy, folder of images, or table"
TARGET = Option("--target COL", "column of a table to predict")
IMAGE = Option("--image HxW", "image size, 3x32x32 for color (default: as stored)")
DATA_DIR = Option("--data-dir DIR", "search this folder first (default: $DENDRITREE_DATA)")
THREADS = Option("--threads N", "threads per network; their number affects the last bits of results", 1)
WORKERS = (
    Option("--workers N", "worker processes (default: one per core)", type=int),
    Option("--backend B", "loky: local processes (default); dask: a cluster; here: this process", "loky"),
    Option("--address URL", "Dask scheduler (default: a local cluster)"),
)


def image_shape(arguments: Arguments) -> tuple[int, int, int] | None:
    """The image shape from the option `IMAGE`."""
    from ..data.naming import parse_image_shape

    return None if arguments.image is None else parse_image_shape(arguments.image)


def say_data(split: DataSplit | None) -> None:
    """Describe the user's own data and its split on standard error; print nothing for built-in data."""
    from ..data.naming import describe

    if split is not None:
        print(describe(split), file=sys.stderr, flush=True)


def make_workers(arguments: Arguments) -> Workers:
    """The workers from the options `WORKERS`."""
    from ..studies.engine.runner import Workers

    return Workers(arguments.backend, count=arguments.workers, address=arguments.address)
