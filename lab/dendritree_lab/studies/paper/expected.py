"""The paper's own numbers, read from a CSV file."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from pathlib import Path

from dendritree.errors import FormatError

from ..engine.statistics import Spread
from .records import Row

COLUMNS = [
    *("table", "paper_label", "task", "network", "size", "dropout"),
    *("train_acc", "train_sd", "val_acc", "val_sd"),
]


@dataclass(frozen=True)
class ExpectedRow:
    """A row of the paper's result tables."""

    row: Row
    paper_label: str
    """LaTeX label of its table."""
    train_acc: Spread
    val_acc: Spread


def read_expected(path: str | os.PathLike[str]) -> list[ExpectedRow]:
    """The rows of a results file, in its order.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "results.csv"
    >>> _ = file.write_text(",".join(COLUMNS) + "\\nmulti,label,multiclass,mln,32,0.4,0.97,0.02,0.82,0.02\\n")
    >>> read_expected(file)[0].val_acc
    Spread(mean=0.82, sd=0.02)
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"the paper's numbers must be a CSV file: {path} cannot be read ({error})") from None
    if not lines or lines[0] != COLUMNS:
        header = ",".join(lines[0]) if lines else "nothing"
        raise FormatError(f"the paper's numbers must have the columns {','.join(COLUMNS)}: {path} has {header}")
    return [_expected_row(path, number, line) for number, line in enumerate(lines[1:], 2) if line]


def _expected_row(path: Path, number: int, line: list[str]) -> ExpectedRow:
    try:
        table, label, task, network, size, *texts = line
        dropout, train_acc, train_sd, val_acc, val_sd = map(float, texts)
        row = Row(table, task, network, int(size), dropout)
    except ValueError:
        dropout = math.nan
    if not math.isfinite(dropout):
        raise FormatError(f"a row must have four names, an integer and five numbers: {path} line {number} is {line}")
    return ExpectedRow(row, label, Spread(train_acc, train_sd), Spread(val_acc, val_sd))
