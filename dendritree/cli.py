"""The `dendritree` command: thin, a table of commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from . import __version__
from .errors import DendritreeError, OptionError, ShapeError
from .levels import Branching

__all__ = ["main"]


def _branching(text: str) -> Branching:
    """`32`, or `16,8` for one number per level, leaf level first."""
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"--branching takes an integer, or one per level as in 16,8: got {text!r}") from None
    return levels[0] if len(levels) == 1 else levels


def _params(arguments: argparse.Namespace) -> None:
    """Print the counts of one layer, or of the paper's tables."""
    if arguments.paper:
        if arguments.in_features is not None:
            raise OptionError(f"--paper takes no sizes: got {arguments.in_features}")
        _paper_params()
        return
    if arguments.in_features is None or arguments.out_features is None:
        raise OptionError("params takes IN and OUT, or --paper: see dendritree params --help")
    from .budget import count, matched_mlp
    from .layers import DendriticLayer

    try:
        layer = DendriticLayer(
            arguments.in_features,
            arguments.out_features,
            branching=_branching(arguments.branching),
            wiring=arguments.wiring,
            ragged=arguments.ragged,
        )
    except ShapeError as error:
        raise ShapeError(str(error).replace("ragged=True", "--ragged")) from None
    counted, control = count(layer), matched_mlp(layer)
    print(layer.forest.describe().capitalize())
    _print_table(
        ("", "weights", "biases", "total", "multiply-adds", "masked form stores"),
        [
            (
                "dendritic",
                counted.weights,
                counted.biases,
                counted.total,
                counted.multiply_adds,
                counted.masked_weights,
            ),
            (
                f"MLP h={control.hidden_features}",
                (c := count(control)).weights,
                c.biases,
                c.total,
                c.multiply_adds,
                "",
            ),
        ],
    )


def _paper_params() -> None:
    from .budget import paper_rows

    rows = [
        (r.table, r.model, r.weights, r.biases, r.total, r.paper_total, "paper is wrong" if r.erratum else "")
        for r in paper_rows()
    ]
    _print_table(("table", "model", "weights", "biases", "total", "paper", ""), rows)
    print("\nThe tree of b=4 on 1024 inputs has 256 + 64 + 16 + 4 + 1 = 341 nodes; the paper counts 85.")


def _models(arguments: argparse.Namespace) -> None:
    """List the registered models."""
    from .models.registry import list_models, model_entry

    names = list_models(arguments.pattern)
    if not names:
        raise OptionError(f"no model matches {arguments.pattern!r}: known are {', '.join(list_models())}")
    width = max(map(len, names))
    for name in names:
        print(f"{name:{width}}  {model_entry(name).summary}")


def _print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns of text to the left and of numbers, with thousands separators, to the right."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    numeric = [any(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    for line in [header, *cells]:
        padded = (f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(line, widths, numeric, strict=True))
        print("  ".join(padded).rstrip())


@dataclass(frozen=True)
class Command:
    """One sub-command: what it does, an example, its arguments and its function."""

    help: str
    example: str
    run: Callable[[argparse.Namespace], None]
    arguments: Sequence[tuple[tuple[str, ...], dict[str, object]]]


COMMANDS: dict[str, Command] = {
    "params": Command(
        "count the parameters of a dendritic layer and of its control",
        "dendritree params 1024 10 --branching 32\n  dendritree params --paper",
        _params,
        [
            (("in_features",), {"type": int, "nargs": "?", "metavar": "IN", "help": "number of inputs"}),
            (("out_features",), {"type": int, "nargs": "?", "metavar": "OUT", "help": "number of neurons"}),
            (
                ("--branching",),
                {"default": "32", "metavar": "B", "help": "children of a node; 16,8 sets each level, leaf level first"},
            ),
            (("--wiring",), {"default": "shared", "help": "which inputs a neuron reads (default: shared)"}),
            (("--ragged",), {"action": "store_true", "help": "accept sizes that are no power of the branching"}),
            (("--paper",), {"action": "store_true", "help": "the paper's three parameter tables, recounted"}),
        ],
    ),
    "models": Command(
        "list the models by name",
        "dendritree models 'conv-*'",
        _models,
        [(("pattern",), {"nargs": "?", "default": "*", "help": "shell pattern (default: all)"})],
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> Parser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="dendritree",
        description="Dendritic-tree neurons for PyTorch.",
        epilog="example:\n  dendritree params 1024 10 --branching 32",
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"dendritree {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = subparsers.add_parser(
            name,
            help=command.help,
            description=command.help.capitalize() + ".",
            epilog=f"example:\n  {command.example}",
            formatter_class=raw,
        )
        for flags, options in command.arguments:
            sub.add_argument(*flags, **options)  # type: ignore[arg-type]
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    >>> main(["models", "conv-*"])
    conv-mln  The appendix CNN with dendritic neurons as its classifier.
    conv-mlp  The appendix CNN with the control MLP as its classifier.
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
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help()
        else:
            COMMANDS[arguments.command].run(arguments)
    finally:
        sys.stdout.flush()  # here, where a closed pipe is caught, and not at exit
    return 0
