"""A model for a user's own table, and the comparison of trees with their controls on splits of its rows."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import sklearn
import torch
from numpy.typing import NDArray

from dendritree.errors import FormatError, check_int, check_one_of
from dendritree.models.sizing import parse_count
from dendritree.sklearn.networks import auto_budget, make_network

from ...data.tables.deciding import decide_schema, open_table
from ...data.tables.encoding import TableEncoding
from ...data.tables.reading import check_table
from ...data.tables.schema import TableSchema
from ...data.tables.target import read_target
from ..engine.runner import Observer, silent
from ..engine.store import RunStore
from .controls import TRAINED, FamilyScores, Predicted, compare_families, make_estimator
from .recommendation import KEEPS, kept_family
from .table_model import TableModel

MODEL = "training the model"
"""The step before the comparison."""


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
        predicted = next(result.predicted for result in self.results if result.family == self.kept)
        assert predicted is not None
        return predicted


def fit_table(
    table: Any,
    target: Any,
    *,
    types: Mapping[str, str] | None = None,
    schema: TableSchema | None = None,
    budget: int | str = "auto",
    task: str = "auto",
    keep: str = "best",
    quick: bool = False,
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    threads: int = 1,
    observer: Observer = silent,
    ready: Callable[[TableModel], None] | None = None,
    unfinished: str | os.PathLike[str] | None = None,
    anew: bool = False,
) -> TableFit:
    """Train a model on a table, then compare trees, their controls and gradient boosting on parts of its rows.

    Args:
        table: a data frame, whose column names are converted to strings; or the path of a CSV or Parquet file.
        target: the column to predict.
        types: column types to use instead of deciding them: `number`, `category`, `date` or `ignore`.
        schema: what the cells mean; by default decided from them.
        budget: parameters of the network; by default selected from the size of the table.
        task: `classification`, `regression` or `auto`.
        keep: the family of the model: `tree`, `sparse`, `dense`, `linear`, or `best`, selected by `best_family`.
        quick: leave out the comparison; `best` is then `tree`.
        splits: number of parts of the rows, each of which is the test part once.
        seed: seed of everything random.
        epochs: passes over the rows; by default those of the estimators.
        threads: threads of torch that train a network.
        observer: called with what is trained, the number of models trained so far and the total.
        ready: called with the model before the comparison; if the comparison recommends another family, the
            result has a new model.
        unfinished: a folder that stores the comparison's models as they are trained: the same call resumes from it, and
            a call with another table, other arguments or other versions raises `FormatError`. It is not removed at the
            end. Without it, nothing is stored.
        anew: discard what another call left in `unfinished`, instead of raising.
    """
    check_one_of("keep", keep, KEEPS)
    seed = check_int("seed", seed, least=0) % 2**32
    splits = check_int("splits", splits, least=2)
    given = None if budget == "auto" else parse_count("budget", budget)
    if isinstance(table, str | os.PathLike):
        file, schema = open_table(table, types=types)
        table = file.frame
    frame = check_table(table)
    schema = decide_schema(frame, types=types) if schema is None else schema
    goal = read_target(frame, target, task, per_class=splits, schema=schema)
    inputs = frame.drop(columns=[goal.name]).iloc[goal.rows].reset_index(drop=True)
    encoding = TableEncoding.learn(inputs, schema)
    classes = len(np.unique(goal.y)) if goal.task == "classification" else 0
    sizes = len(encoding.features), classes if classes > 2 else 1
    parameters = auto_budget(*sizes, rows=len(inputs)) if given is None else given
    with torch.random.fork_rng(devices=[]):
        for family in ("tree", "sparse", "dense"):  # too small a budget is rejected before any training
            make_network(family, *sizes, budget=parameters)
    options: dict[str, Any] = {"budget": parameters, "seed": seed, "epochs": epochs, "threads": threads}
    encoded = encoding.encode(inputs)

    def train(family: str) -> TableModel:
        names = {"budget": parameters, "epochs": epochs, "random_state": seed, "threads": threads}
        estimator = make_estimator(goal.task, neurons=family, **names).fit(encoded.x, goal.y)
        return TableModel(estimator, encoding, goal.name, goal.task)

    first = "tree" if keep == "best" else keep
    config: dict[str, Any] = {
        "table": table_digest(frame),
        "target": goal.name,
        "task": goal.task,
        "families": list(TRAINED),
    }
    config |= {"scikit-learn": sklearn.__version__, "splits": splits, "schema": schema.as_dict(), **options}
    with nullcontext() if unfinished is None or quick else _open_store(unfinished, config, anew=anew) as store:
        observer(MODEL, 0, 1)
        model = train(first)
        observer(MODEL, 1, 1)
        if ready is not None:
            ready(model)
        results: list[FamilyScores] = []
        if not quick:
            results = compare_families(
                inputs, goal, schema=schema, splits=splits, **options, observer=observer, store=store
            )
    kept = first if quick else kept_family(keep, results)
    if kept != first:
        model = train(kept)
    left_out = (f"column {name!r} {why}: left out" for name, why in encoding.left_out)
    notices = (*goal.notices, *schema.notices, *left_out)
    numbers = goal.rows + 1
    return TableFit(model, results, parameters, splits, seed, notices, keep, kept, inputs, goal.y, numbers)


def _open_store(folder: str | os.PathLike[str], config: dict[str, Any], *, anew: bool) -> RunStore:
    advice = f"remove {folder} to start over"
    try:
        return RunStore.create_or_open(folder, config, advice=advice)
    except FormatError:
        if not anew:
            raise
    shutil.rmtree(folder)
    return RunStore.create_or_open(folder, config)


def table_digest(frame: Any) -> str:
    """A digest that differs for tables with other cells, columns or types.

    >>> table_digest(pandas.DataFrame({"rooms": [3, 4]})) == table_digest(pandas.DataFrame({"rooms": [3, 5]}))
    False
    """
    digest = hashlib.sha256(repr([(name, str(kind)) for name, kind in frame.dtypes.items()]).encode())
    for _, cells in frame.items():
        digest.update(pandas.util.hash_pandas_object(cells, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]
