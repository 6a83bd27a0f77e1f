"""`DendriticRegressor`: numbers from rows of numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError, import_extra
from .base import Array, DendriticEstimator, rows_that_count
from .scaling import Standardiser

__all__ = ["DendriticRegressor"]

_sklearn = import_extra("sklearn.base", extra="sklearn")


class DendriticRegressor(_sklearn.RegressorMixin, DendriticEstimator):  # type: ignore[misc, name-defined]
    """A network of dendritic neurons that predicts one number or several; good untouched on a new table of numbers.

    Inputs and targets are standardised inside, inputs cut off at five deviations. The loss is the squared error.
    Arguments and attributes are those of `DendriticClassifier`, classes and their weights apart.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> x, y = load_diabetes(return_X_y=True)
        >>> model = DendriticRegressor(epochs=20, random_state=0).fit(x, y)
        >>> model.score(x, y) > 0.4
        True
    """

    def __init__(
        self,
        *,
        budget: int | str = "auto",
        neurons: str = "tree",
        epochs: int | str = "auto",
        batch_size: int | str = "auto",
        lr: float = 0.01,
        weight_decay: float | str = "auto",
        dropout: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        random_state: Any = None,
        verbose: bool = False,
        device: str = "cpu",
    ) -> None:
        self.budget = budget
        self.neurons = neurons
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train a new network on rows of numbers and what they should give: a number each, or a row of them."""
        with self._draft() as draft:
            draft._fit(*draft._checked(X, y, sample_weight, reset=True))
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from some more rows, in one pass at a constant rate.

        The scales of inputs and targets are those of all rows seen so far. At least two rows at a time, with as
        many targets as before.
        """
        with self._draft() as draft:
            draft._partial_fit(*draft._checked(X, y, sample_weight, reset=not hasattr(self, "network_")))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """A number for each row, or as many as `y` had columns."""
        outputs = self._outputs(X)  # which asks first whether it is fitted
        numbers = self._target_scaling.undo(outputs)
        return numbers[:, 0] if self._one_target else numbers

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Array, Array, Array]:  # noqa: N803
        validation = import_extra("sklearn.utils.validation", extra="sklearn")
        x, numbers = validation.validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=reset
        )
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = validation.column_or_1d(numbers, warn=True)
        weights = validation._check_sample_weight(sample_weight, x, dtype=np.float64)
        return rows_that_count(x, numbers.astype(np.float64), weights)

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        columns = y.reshape(len(y), -1)
        if first:
            self._one_target = y.ndim == 1
            self._target_scaling = Standardiser.of(columns, weight)
        elif columns.shape[1] != self._out_features():
            raise OptionError(f"y must have as many targets as before, {self._out_features()}: got {columns.shape[1]}")
        else:
            self._target_scaling = self._target_scaling.updated(columns, weight)
        return self._target_scaling.apply(columns)

    def _out_features(self) -> int:
        return len(self._target_scaling.mean)

    def _loss(self) -> str:
        return "squared-error"

    def _stratify(self, y: Array) -> Array | None:
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
