"""A model of a user's own table, and the comparison of trees with their controls on splits of its rows."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import OptionError, check_int, check_one_of, import_extra
from dendritree.models.sizing import parse_count
from dendritree.sklearn.networks import auto_budget, make_network

from ...data.tables.encoding import TableEncoding
from ...data.tables.reading import check_table
from ...data.tables.target import read_target
from ..engine.runner import Observer, silent
from .controls import TRAINED, FamilyScores, Predicted, compare_families, make_estimator
from .recommendation import KEEPS, kept_family
from .stored_trials import kept_trials
from .table_model import TableModel


@dataclass(frozen=True, eq=False)
class TableFit:
    """A new model, the scores of its comparison, the rows it was trained on, and notices about the table."""

    model: TableModel
    results: list[FamilyScores]
    budget: int
    splits: int
    seed: int
    notices: tuple[str, ...]
    keep: str
    """The requested family, or `best`."""
    kept: str
    """The family of the model."""
    frame: Any
    """The columns besides the target, for the rows that have a target."""
    y: NDArray[Any]
    """The targets of these rows."""
    row_numbers: NDArray[np.int64]
    """Their numbers in the table, from 1."""

    @property
    def rows(self) -> int:
        """Number of rows that the model was trained on."""
        return len(self.y)

    @property
    def predicted(self) -> Predicted:
        """Predictions of the model's family in the comparison, for each row by a model not trained on it."""
        found = next(result.predicted for result in self.results if result.family == self.kept)
        assert found is not None
        return found


def fit_table(
    frame: Any,
    target: Any,
    *,
    budget: int | str = "auto",
    task: str = "auto",
    keep: str = "best",
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    observer: Observer = silent,
    unfinished: str | os.PathLike[str] | None = None,
    anew: bool = False,
    neurons: str | None = None,
) -> TableFit:
    """Compare trees, their controls and gradient boosting on parts of a table, then train a model on all rows.

    Args:
        frame: a data frame; column names that are not strings are converted, 0 to `"0"`.
        target: the column to predict.
        budget: parameters of the network; by default selected from the size of the table.
        task: `classification`, `regression` or `auto`.
        keep: the family of the model: `tree`, `sparse`, `dense`, `linear`, or `best`, selected by `best_family`.
        splits: number of parts of the rows, each of which is the test part once.
        seed: seed of everything random.
        epochs: passes over the rows; by default those of the estimators.
        observer: called with the step's name, the number of models trained so far and the total.
        unfinished: a folder that stores the comparison's models as they are trained: the same call resumes from it, and
            a call with another table, other arguments or other versions raises `FormatError`. It is not removed at the
            end. Without it, nothing is stored.
        anew: remove what another call left in `unfinished`, instead of raising.
        neurons: the old name of `keep`.
    """
    if neurons is not None:
        if keep != "best":
            raise OptionError(f"neurons is the old name of keep, so give one of them: got {neurons!r} and {keep!r}")
        warnings.warn("neurons of fit_table is now keep", DeprecationWarning, stacklevel=2)
        keep = neurons
    check_one_of("keep", keep, KEEPS)
    seed = check_int("seed", seed, least=0) % 2**32
    splits = check_int("splits", splits, least=2)
    given = None if budget == "auto" else parse_count("budget", budget)
    frame = check_table(frame)
    found = read_target(frame, target, task, per_class=splits)
    inputs = frame.drop(columns=[found.name]).iloc[found.rows].reset_index(drop=True)
    encoding = TableEncoding.learn(inputs)
    classes = len(np.unique(found.y)) if found.task == "classification" else 0
    sizes = len(encoding.features), classes if classes > 2 else 1
    parameters = auto_budget(*sizes) if given is None else given
    with torch.random.fork_rng(devices=[]):
        for family in ("tree", "sparse", "dense"):  # too small a budget is rejected before any training
            make_network(family, *sizes, budget=parameters)
    options: dict[str, Any] = {"budget": parameters, "splits": splits, "seed": seed, "epochs": epochs}
    versions = {"scikit-learn": import_extra("sklearn", extra="tables").__version__}
    config = {"target": found.name, "task": found.task, "families": list(TRAINED), "versions": versions, **options}
    with kept_trials(unfinished, frame, config, anew=anew) as store:
        results = compare_families(inputs, found, **options, observer=observer, store=store)
    kept = kept_family(keep, results)
    estimator = make_estimator(found.task, neurons=kept, budget=parameters, epochs=epochs, random_state=seed)
    encoded = encoding.encode(inputs)
    estimator.fit(encoded.x, found.y)
    observer("training on all rows", 1, 1)
    left_out = (f"column {name!r} {why}: left out" for name, why in encoding.left_out)
    notices = (*found.notices, *encoded.notices("no number"), *left_out)
    model = TableModel(estimator, encoding, found.name, found.task)
    numbers = found.rows + 1
    return TableFit(model, results, parameters, splits, seed, notices, keep, kept, inputs, found.y, numbers)
