"""A model of a user's own table, trained on all rows after trees and their controls were compared on parts of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import OptionError, check_int, check_one_of
from ...models.sizing import parse_count
from ...sklearn.tables.encoding import TableEncoding
from ...sklearn.tables.model import TableModel
from ...sklearn.tables.reading import check_table
from ...sklearn.tables.target import read_target
from .controls import FamilyScores, Observer, compare_families, make_estimator

__all__ = ["TableFit", "fit_table"]

NEURONS = ("tree", "sparse")


@dataclass(frozen=True)
class TableFit:
    """A new model, and what was found on the way."""

    model: TableModel
    results: list[FamilyScores]
    rows: int
    budget: int
    splits: int
    seed: int
    notices: tuple[str, ...]


def fit_table(
    frame: Any,
    target: Any,
    *,
    budget: int | str = "auto",
    task: str = "auto",
    neurons: str = "tree",
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    observer: Observer | None = None,
) -> TableFit:
    """Train a model on all rows of a table, after trees and their controls have been compared on parts of them.

    Args:
        frame: a data frame; names of columns that are no texts are read as such, 0 as `"0"`.
        target: the column to predict.
        budget: parameters of the network; by default what the table's size suggests.
        task: `classification`, `regression` or `auto`.
        neurons: of the model that is kept: `tree` or `sparse`.
        splits: parts of the rows, each of which is the test part once.
        seed: of everything random.
        epochs: passes over the rows, by default as many as the estimators take.
        observer: called with what is done, and how many models of how many are.
    """
    from ...sklearn.networks import auto_budget, make_network

    check_one_of("neurons", neurons, NEURONS)
    seed = check_int("seed", seed, least=0) % 2**32
    splits = check_int("splits", splits, least=2)
    given = None if budget == "auto" else parse_count("budget", budget)
    frame = check_table(frame)
    found = read_target(frame, target, task, per_class=splits)
    inputs = frame.drop(columns=[found.name]).iloc[found.rows].reset_index(drop=True)
    encoding = TableEncoding.learn(inputs)
    if not encoding.columns:
        raise OptionError("a table must have a column to learn from besides its target: found none")
    classes = len(np.unique(found.y)) if found.task == "classification" else 0
    sizes = len(encoding.features), classes if classes > 2 else 1
    parameters = auto_budget(len(found.y), *sizes) if given is None else given
    with torch.random.fork_rng(devices=[]):
        for family in ("tree", "sparse", "dense"):  # too small a budget is refused now, not after some training
            make_network(family, *sizes, budget=parameters)
    results = compare_families(
        inputs, found, budget=parameters, splits=splits, seed=seed, epochs=epochs, observer=observer
    )
    estimator = make_estimator(found.task, neurons=neurons, budget=parameters, epochs=epochs, random_state=seed)
    encoded = encoding.encode(inputs)
    estimator.fit(encoded.x, found.y)
    if observer is not None:
        observer("training on all rows", 1, 1)
    notices = (*found.notices, *encoded.notices("no number"), *_notices(encoding))
    model = TableModel(estimator, encoding, found.name, found.task)
    return TableFit(model, results, len(found.y), parameters, splits, seed, notices)


def _notices(encoding: TableEncoding) -> Iterator[str]:
    for name, why in encoding.left_out:
        yield f"column {name!r} {why}: left out"
