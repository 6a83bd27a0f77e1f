"""The paper's three parameter tables, recounted on real models."""

from __future__ import annotations

from typing import NamedTuple

import torch

from dendritree.budget import count
from dendritree.models import MLP, MLNClassifier


class ParameterRow(NamedTuple):
    """One row of the paper's parameter tables, with the actual counts of the model."""

    table: str
    model: str
    paper_weights: int
    paper_biases: int
    weights: int
    biases: int

    @property
    def paper_total(self) -> int:
        """The total the paper prints."""
        return self.paper_weights + self.paper_biases

    @property
    def total(self) -> int:
        """The true total."""
        return self.weights + self.biases

    @property
    def erratum(self) -> bool:
        """Whether the paper's numbers are wrong."""
        return (self.paper_weights, self.paper_biases) != (self.weights, self.biases)


PUBLISHED = {
    "binary": (1024, 1, "b=2 2046 1023, h=3 3075 4, b=4 1364 85, b=32 1056 33, h=2 2050 3"),
    "multiclass": (
        1024,
        10,
        "b=2 20460 10230, h=30 31020 40, b=4 13640 850, h=14 14476 24, b=32 10560 330, h=11 11374 21",
    ),
    "cnn": (256, 10, "b=2 5100 2550, h=29 7714 39, b=4 3400 850, h=16 4256 26, b=16 2720 170, h=11 2926 21"),
}
"""The paper's tables: inputs, outputs, weights and biases of each model. The cnn table counts the head alone."""


def parameter_rows() -> list[ParameterRow]:
    """The paper's three parameter tables, 17 rows, counted on real models. The b=4 rows on 1024 inputs are errata.

    >>> [(row.table, row.model, row.paper_total, row.total) for row in parameter_rows() if row.erratum]
    [('binary', 'b=4', 1449, 1705), ('multiclass', 'b=4', 14490, 17050)]
    """
    result = []
    for table, (ins, outs, text) in PUBLISHED.items():
        for name, weights, biases in map(str.split, text.split(", ")):
            family, size = name[0], int(name[2:])
            with torch.random.fork_rng(devices=[]):
                head = MLNClassifier(ins, outs, branching=size) if family == "b" else MLP(ins, outs, hidden=size)
            counted = count(head)
            result.append(ParameterRow(table, name, int(weights), int(biases), counted.weights, counted.biases))
    return result
