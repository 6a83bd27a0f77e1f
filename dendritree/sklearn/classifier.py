"""`DendriticClassifier`: classes from rows of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError, import_extra
from .estimator import Array, DendriticEstimator, rows_that_count

_sklearn = import_extra("sklearn.base", extra="sklearn")
_class_weight = import_extra("sklearn.utils.class_weight", extra="sklearn")
_extmath = import_extra("sklearn.utils.extmath", extra="sklearn")
_multiclass = import_extra("sklearn.utils.multiclass", extra="sklearn")


@dataclass(kw_only=True, eq=False, repr=False)
class DendriticClassifier(_sklearn.ClassifierMixin, DendriticEstimator):  # type: ignore[misc, name-defined]
    """A classifier made of dendritic neurons, with defaults that do well on a new table of numbers.

    Inputs are standardized and clipped at five standard deviations. NaN marks a missing value: it is replaced by the
    mean, and each column with missing values in training gets an indicator input. Sparse matrices are made dense.
    Training uses AdamW and a one-cycle learning rate. The result depends only on `random_state`, in any thread; torch's
    own generator is neither used nor changed. Threads may share a fitted estimator.

    Args:
        budget: maximum number of parameters of the network, such as 5000 or `"5k"`; by default 15,000, and with fewer
            than 1,000 rows at most as many as scikit-learn's `MLPClassifier()` has.
        neurons: `"tree"`; `"sparse"` for neurons without dendrites; or a control, `"dense"` (an MLP of the same budget)
            or `"linear"`.
        image_shape: (channels, height, width) of rows that are the pixels of an image; neurons then read small windows.
        branching: `[synapses per dendrite, dendrites per neuron]`, as in `DendriticLayer`; by default `[8, 4]` for
            tables. There is no separate option for the number of dendrites.
        wiring: which inputs a neuron reads, as in `DendriticLayer`; by default `"random"` for tables.
        epochs: passes over the rows; by default enough for about 0.6 steps per row (200 to 1,300 steps in total), but
            at least 15.
        batch_size: rows per step; by default 128, 192 from 4,000 rows on and 384 from 8,000. Adjusted so that no batch
            has one row.
        lr: highest learning rate of the cycle, and the constant one of `partial_fit`.
        weight_decay: weight decay of AdamW.
        dropout: probability of silencing a hidden neuron while training.
        members: groups of hidden neurons that each learn to predict without the others (`training.committee`), by
            default 4, and up to 16 from 1,000 rows on. Each group leaves out an equal part of the rows; the weights of
            the epoch with the lowest loss on the left-out rows are kept. The trained network is an ordinary one, which
            predicts the mean of the groups. 1 trains the network as a whole.
        class_weight: a weight for each class, or `"balanced"` (`fit` only); all equal by default.
        early_stopping: set aside some rows to decide when to stop, and keep the weights of the epoch with the lowest
            loss on them; members then learn from all other rows.
        validation_fraction: share of the rows set aside for early stopping.
        n_iter_no_change: epochs without a lower validation loss after which training stops.
        random_state: an integer for reproducible results.
        threads: number of torch's threads; the last bits of a result depend on it. The default is one because several
            threads wait for each other on a busy machine: beside two other processes on two cores, a fit of 6,000 rows
            took 13 to 18 seconds with one and more than 200 with two.
        verbose: show the progress and the time left, as in `dendritree.fit`.
        device: the device of the network, as in PyTorch.

    Attributes:
        classes_: the classes, in the order of `predict_proba`'s columns.
        network_: the trained `nn.Module`, which takes standardized inputs.
        n_parameters_: number of parameters of the network.
        n_iter_: number of epochs trained.
        loss_curve_: mean training loss of each epoch.
        validation_loss_curve_: mean loss of each epoch on the rows that were left out or set aside; None without such
            rows.
        n_features_in_, feature_names_in_: as in all scikit-learn estimators.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> x, y = load_iris(return_X_y=True)
        >>> model = DendriticClassifier(epochs=20, random_state=0).fit(x, y)
        >>> model.score(x, y) > 0.9, model.n_parameters_ <= 803
        (True, True)
    """

    class_weight: Any = None

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on more rows, in one pass at a constant learning rate; the first call needs all `classes`.

        The scale of the inputs is that of all rows seen so far. Each call needs at least two rows, of any of the
        classes; `class_weight="balanced"` is therefore rejected.
        """
        if self.class_weight == "balanced":
            raise OptionError(
                "class_weight must be None or a weight for each class in partial_fit, which does not see all rows at "
                "once; scikit-learn's compute_class_weight gives balanced ones from a sample of y: got 'balanced'"
            )
        with self._draft() as draft:
            draft.classes_ = self._checked_classes(classes)
            draft._partial_fit(*draft._checked(X, y, sample_weight, partial=True))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(1)])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Probabilities of the classes for each row, in the order of `classes_`."""
        logits = self._outputs(X)
        if len(self.classes_) == 2:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        return np.asarray(_extmath.softmax(logits))

    def output_units(self) -> tuple[Array, Array, list[str]]:
        """Log-odds: of the second of two classes; with more, differences of two outputs are log-odds of two classes."""
        names = [str(each) for each in self.classes_]
        outputs = names if len(names) > 2 else names[1:]
        return np.ones(len(outputs)), np.zeros(len(outputs)), outputs

    def _checked_classes(self, classes: ArrayLike | None) -> Array:
        """The classes of `partial_fit`: given with the first call, the same ones or None afterwards."""
        known: Array | None = getattr(self, "classes_", None)
        if classes is None:
            if known is None:
                raise OptionError("classes must be given in the first call of partial_fit: got None")
            return known
        given = np.unique(np.asarray(classes))
        if known is not None and not np.array_equal(given, known):
            raise OptionError(f"classes must stay those of the first call, {known}: got {given}")
        if len(given) < 2:
            raise OptionError(f"classes must be at least two: got {given}")
        return given

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, partial: bool = False) -> tuple[Array, Array, Array]:  # noqa: N803
        x, labels, weights = super()._checked(X, y, sample_weight, partial=partial)
        _multiclass.check_classification_targets(labels)
        if not partial:
            self.classes_ = np.unique(labels)
            if len(self.classes_) < 2:
                raise ValueError(f"y must have at least two classes: got one class, {self.classes_[0]!r}")
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise OptionError(f"y must hold only classes of {self.classes_}: got {unknown}")
        if self.class_weight is None:
            return x, labels, weights
        per_class = _class_weight.compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        return rows_that_count(x, labels, weights * per_class[np.searchsorted(self.classes_, labels)])

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _head(self) -> tuple[int, str]:
        classes = len(self.classes_)
        return (classes, "cross-entropy") if classes > 2 else (1, "binary-logits")
