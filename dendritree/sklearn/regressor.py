"""`DendriticRegressor`: numbers from rows of numbers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError, import_extra
from .estimator import Array, DendriticEstimator, fit_scaler, validation

_sklearn = import_extra("sklearn.base", extra="sklearn")


@dataclass(kw_only=True, eq=False, repr=False)
class DendriticRegressor(_sklearn.RegressorMixin, DendriticEstimator):  # type: ignore[misc, name-defined]
    """A regressor made of dendritic neurons, for one target or several, with defaults that do well on a new table.

    Inputs and targets are standardized, inputs clipped at five standard deviations. The loss is the squared error.
    Arguments and attributes are those of `DendriticClassifier`, except classes and their weights.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> x, y = load_diabetes(return_X_y=True)
        >>> model = DendriticRegressor(epochs=20, random_state=0).fit(x, y)
        >>> model.score(x, y) > 0.4
        True
    """

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train on more rows, in one pass at a constant learning rate.

        The scales of inputs and targets are those of all rows seen so far. Each call needs at least two rows, with
        as many targets as before.
        """
        with self._draft() as draft:
            draft._partial_fit(*draft._checked(X, y, sample_weight, partial=True))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """A number for each row, or as many as `y` had columns."""
        outputs = self._outputs(X)  # raises first if not fitted
        numbers: Array = self._target_scaler.inverse_transform(outputs)
        return numbers[:, 0] if self._one_target else numbers

    def output_units(self) -> tuple[Array, Array, list[str]]:
        """The scale and the mean of the targets."""
        return self._target_scaler.scale_, self._target_scaler.mean_, []

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        if y.ndim == 2 and y.shape[1] == 1:
            y = validation.column_or_1d(y, warn=True)
        columns = y.reshape(len(y), -1).astype(np.float64)
        if first:
            self._one_target = y.ndim == 1
            self._target_scaler = fit_scaler(columns, weight)
            return np.asarray(self._target_scaler.transform(columns), dtype=np.float32)
        if columns.shape[1] != self._head()[0]:
            raise OptionError(f"y must have as many targets as before, {self._head()[0]}: got {columns.shape[1]}")
        self._target_scaler = copy.deepcopy(self._target_scaler).partial_fit(columns, sample_weight=weight)
        return np.asarray(self._target_scaler.transform(columns), dtype=np.float32)

    def _head(self) -> tuple[int, str]:
        return len(self._target_scaler.mean_), "squared-error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
