"""Gradient boosting on a table's own columns, with scikit-learn's defaults: the only rival that is not a network.

It reads the same columns as the networks, in the form that suits it: categories stay categories, missing cells stay
missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from ...data.tables.cells import as_numbers
from ...data.tables.encoding import TableColumn, TableEncoding

MOST_CATEGORIES = 255
"""Maximum number of categories per column in scikit-learn; the rarest ones beyond it share one."""


def own_columns(encoding: TableEncoding, frame: Any) -> Any:
    """The columns that a model reads, as a data frame of numbers and categories; missing cells stay missing.

    >>> frame = pandas.DataFrame({"rooms": [3, None, 4], "town": ["Delft", "Gouda", None]})
    >>> own_columns(TableEncoding.learn(frame), frame).isna().to_numpy().tolist()
    [[False, False], [True, False], [False, True]]
    """
    values, _ = encoding.schema.read(frame, [column.name for column in encoding.columns])
    parts = [part for column in encoding.columns for part in _parts(column, values[column.name])]
    return pandas.DataFrame({f"x{number}": part for number, part in enumerate(parts)})


def _parts(column: TableColumn, cells: Any) -> list[Any]:
    if column.kind == "number":
        return [as_numbers(cells)]
    if column.kind == "date":  # day, month and weekday
        inputs = column.encode(cells)[0][:, :3]
        return list(np.where(np.isnan(as_numbers(cells))[:, None], np.nan, inputs).T)
    known = [*column.categories, *column.rare]  # the most frequent first
    codes = pandas.Index(known).get_indexer(cells.astype(object))  # -1 where absent
    codes = np.minimum(codes, MOST_CATEGORIES - 1)
    return [pandas.Categorical.from_codes(codes, categories=range(min(len(known), MOST_CATEGORIES)))]


class Boosting:
    """`HistGradientBoostingClassifier()` or `HistGradientBoostingRegressor()`, unchanged, on frames of `own_columns`.

    It is seeded and uses one thread: with several, the order of sums varies. Regression targets are standardized first:
    this does not change the splits, and keeps them in the range of float32, which ends at 1e38.

    Args:
        task: `classification` or `regression`.
        seed: selects the rows for early stopping, if there are many.
    """

    def __init__(self, task: str, seed: int) -> None:
        self.classifies = task == "classification"
        make = HistGradientBoostingClassifier if self.classifies else HistGradientBoostingRegressor
        self.model = make(random_state=seed)
        self.shift, self.scale = 0.0, 1.0

    def fit(self, x: Any, y: NDArray[Any]) -> Boosting:
        """Train on rows."""
        if self.classifies:
            if np.unique(y, return_counts=True)[1].min() < 2:  # no row of such a class can be set aside
                self.model.set_params(early_stopping=False)
        else:
            self.shift, self.scale = float(y.mean()), float(y.std()) or 1.0
            y = (y - self.shift) / self.scale
        with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore"):  # thresholds between numbers of 1e308
            self.model.fit(x, y)
        return self

    def predict(self, x: Any) -> NDArray[Any]:
        """Numbers, or probabilities of the classes."""
        with threadpool_limits(1):
            if self.classifies:
                return np.asarray(self.model.predict_proba(x))
            return np.asarray(self.model.predict(x) * self.scale + self.shift)

    @property
    def size(self) -> int:
        """The nodes of all its trees, splits and leaves.

        A split stores a column and a threshold, a leaf one value. Counting each as one number understates the size of
        boosting and never overstates it.
        """
        return sum(len(tree.nodes) for step in self.model._predictors for tree in step)
