"""`dendritree params`: count parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dendritree.errors import OptionError, ShapeError

from .messages import print_columns
from .options import Arguments, Option

if TYPE_CHECKING:
    from dendritree.tree.levels import Branching


def run(arguments: Arguments) -> None:
    """Count the parameters of a dendritic layer and of its control."""
    if arguments.paper:
        if arguments.in_features is not None:
            raise OptionError(f"--paper takes no sizes: got {arguments.in_features}")
        _paper_params()
    elif arguments.out_features is None:
        raise OptionError("params takes IN and OUT, or --paper: see dendritree params --help")
    else:
        _layer_params(arguments)


def _layer_params(arguments: Arguments) -> None:
    """Print the counts of one layer and of its control."""
    from dendritree.budget import count, matched_mlp
    from dendritree.layers import DendriticLayer

    try:
        sizes = arguments.only("in_features", "out_features", "wiring", "ragged")
        layer = DendriticLayer(**sizes, branching=_branching(arguments.branching))
    except ShapeError as error:
        raise ShapeError(str(error).replace("ragged=True", "--ragged")) from None
    control = matched_mlp(layer)
    tree, mlp = count(layer), count(control)
    rows = [
        ("dendritic", tree.weights, tree.biases, tree.total, tree.multiply_adds, tree.masked_weights),
        (f"MLP h={control.hidden_features}", mlp.weights, mlp.biases, mlp.total, mlp.multiply_adds, ""),
    ]
    print(layer.forest.describe().capitalize())
    print_columns(("", "weights", "biases", "total", "multiply-adds", "masked weights"), rows)


def _branching(text: str) -> Branching:
    """`32`, or `16,8` for one number per level, leaf level first."""
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"--branching takes an integer, or one per level as in 16,8: got {text!r}") from None
    return levels[0] if len(levels) == 1 else levels


def _paper_params() -> None:
    """Print the paper's parameter tables, recounted."""
    from ..studies.paper.parameter_tables import parameter_rows

    rows = [
        (r.table, r.model, r.weights, r.biases, r.total, r.paper_total, "paper is wrong" if r.erratum else "")
        for r in parameter_rows()
    ]
    print_columns(("table", "model", "weights", "biases", "total", "paper", ""), rows)
    print("\nThe tree of b=4 on 1024 inputs has 256 + 64 + 16 + 4 + 1 = 341 nodes; the paper counts 85.")


OPTIONS = [
    Option("in_features [IN]", "number of inputs", type=int),
    Option("out_features [OUT]", "number of neurons", type=int),
    Option("--branching B", "children per node; one number per level as in 16,8, leaf level first", "32"),
    Option("--wiring W", "which inputs each neuron reads", "shared"),
    Option("--ragged", "allow sizes that are not a power of the branching"),
    Option("--paper", "count the models of the paper's three parameter tables"),
]
EXAMPLES = "dendritree params 1024 10 --branching 32\ndendritree params --paper"
