"""`DendriticClassifier`: classes from rows of numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError, import_extra
from .base import Array, DendriticEstimator, rows_that_count

__all__ = ["DendriticClassifier"]

_sklearn = import_extra("sklearn.base", extra="sklearn")


class DendriticClassifier(_sklearn.ClassifierMixin, DendriticEstimator):  # type: ignore[misc, name-defined]
    """A network of dendritic neurons that tells classes apart; good untouched on a new table of numbers.

    Inputs are standardised inside and cut off at five deviations. Trained with AdamW and one cycle of learning rates.
    The result depends on `random_state` alone, and torch's own random numbers are left as they were.

    Args:
        budget: most parameters the network may have, as 5000 or `"5k"`; by default nine tenths of what scikit-learn's
            `MLPClassifier()` has, or an eighth of the number of rows if that is more, up to 20,000.
        neurons: `"tree"`; `"sparse"` for neurons without dendrites; or a control, `"dense"` (an MLP of the same budget)
            or `"linear"`.
        epochs: passes over the rows; by default as many as make about two thousand steps, 15 at least.
        batch_size: rows a step; by default 64, or 256 from 8,000 rows on. A few less, or more, where one would be left.
        lr: highest learning rate of the cycle, and the constant one of `partial_fit`.
        weight_decay: of AdamW; by default 500 divided by the number of rows, from 0.01 to 1.
        dropout: probability of silencing a hidden neuron while training.
        class_weight: a weight for each class, or `"balanced"`, for `fit` alone; all alike by default.
        early_stopping: keep a part of the rows to stop by, and the weights of the best epoch by its loss.
        validation_fraction: share of the rows kept for that.
        n_iter_no_change: epochs without a lower validation loss after which training stops.
        random_state: a number for the same result every time.
        verbose: write a line on the way, about twenty times.
        device: of the network, as in PyTorch.

    Attributes:
        classes_: the classes, in the order of `predict_proba`'s columns.
        network_: the trained `nn.Module`, which takes standardised inputs.
        n_parameters_: parameters of the network.
        n_iter_: epochs trained.
        loss_curve_: mean training loss of each epoch; `validation_loss_curve_` beside it with early stopping.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> x, y = load_iris(return_X_y=True)
        >>> model = DendriticClassifier(epochs=20, random_state=0).fit(x, y)
        >>> model.score(x, y) > 0.9, model.n_parameters_ <= 720
        (True, True)
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
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train a new network on rows of numbers and their classes."""
        with self._draft() as draft:
            rows = draft._checked(X, y, sample_weight, reset=True)
            draft.classes_ = np.unique(rows[1])
            if len(draft.classes_) < 2:
                raise ValueError(
                    f"y must have at least two classes to tell apart: got one class, {draft.classes_[0]!r}"
                )
            draft._fit(*draft._with_class_weight(*rows))
        return self

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from some more rows, in one pass at a constant rate; the first call must be told all `classes`.

        The scale of the inputs is that of all rows seen so far. At least two rows at a time, of any of the classes;
        `class_weight="balanced"` is therefore refused.
        """
        if self.class_weight == "balanced":
            raise OptionError(
                "class_weight must be None or a weight for each class in partial_fit, which does not see all rows at "
                "once; scikit-learn's compute_class_weight gives balanced ones from a sample of y: got 'balanced'"
            )
        first = not hasattr(self, "classes_")
        if classes is not None:
            given = np.unique(np.asarray(classes))
            if not first and not np.array_equal(given, self.classes_):
                raise OptionError(f"classes must stay those of the first call, {self.classes_}: got {given}")
        elif first:
            raise OptionError("classes must be given in the first call of partial_fit: got None")
        if first and len(given) < 2:
            raise OptionError(f"classes must be at least two to tell apart: got {given}")
        with self._draft() as draft:
            rows = draft._checked(X, y, sample_weight, reset=first)
            if first:
                draft.classes_ = given
            unknown = np.setdiff1d(rows[1], draft.classes_)
            if len(unknown):
                raise OptionError(f"y must hold classes of {draft.classes_} alone: got {unknown}")
            draft._partial_fit(*draft._with_class_weight(*rows))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        chosen: Array = self.classes_[probabilities.argmax(1)]
        return chosen

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Probabilities of the classes, one row each, in the order of `classes_`."""
        logits = self._outputs(X)
        if len(self.classes_) == 2:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        powers = np.exp(logits - logits.max(1, keepdims=True))
        probabilities: Array = powers / powers.sum(1, keepdims=True)
        return probabilities

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Array, Array, Array]:  # noqa: N803
        validation = import_extra("sklearn.utils.validation", extra="sklearn")
        multiclass = import_extra("sklearn.utils.multiclass", extra="sklearn")
        x, labels = validation.validate_data(self, X, y, dtype=np.float64, reset=reset)
        multiclass.check_classification_targets(labels)
        return rows_that_count(x, labels, validation._check_sample_weight(sample_weight, x, dtype=np.float64))

    def _with_class_weight(self, x: Array, labels: Array, weights: Array) -> tuple[Array, Array, Array]:
        if self.class_weight is None:
            return x, labels, weights
        compute = import_extra("sklearn.utils.class_weight", extra="sklearn").compute_class_weight
        of_class = compute(self.class_weight, classes=self.classes_, y=labels)
        return rows_that_count(x, labels, weights * of_class[np.searchsorted(self.classes_, labels)])

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _out_features(self) -> int:
        return len(self.classes_) if len(self.classes_) > 2 else 1

    def _loss(self) -> str:
        return "cross-entropy" if len(self.classes_) > 2 else "binary-logits"

    def _stratify(self, y: Array) -> Array | None:
        return y
