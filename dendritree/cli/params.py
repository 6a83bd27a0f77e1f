"""`dendritree params`: count parameters."""

from __future__ import annotations

import argparse

from ..errors import OptionError, ShapeError
from ..levels import Branching
from .command import Command
from .table import print_table

__all__ = ["PARAMS"]


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
    from ..budget import count, matched_mlp
    from ..layers import DendriticLayer

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
    print_table(
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
    from ..studies.paper.parameters import paper_rows

    rows = [
        (r.table, r.model, r.weights, r.biases, r.total, r.paper_total, "paper is wrong" if r.erratum else "")
        for r in paper_rows()
    ]
    print_table(("table", "model", "weights", "biases", "total", "paper", ""), rows)
    print("\nThe tree of b=4 on 1024 inputs has 256 + 64 + 16 + 4 + 1 = 341 nodes; the paper counts 85.")


PARAMS = Command(
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
)
