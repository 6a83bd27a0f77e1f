"""The base of the classifier and the regressor: options, scaling, training, prediction."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from ..errors import OptionError, check_int, check_probability, import_extra
from ..models.network import Network
from ..models.sizing import parameters_of, parse_count
from ..randomness import own_draws
from ..training import EarlyStopping, FitConfig, History, fit, make_optimizer
from ..training.committee import Committee, draw_members, tree_of_neuron
from ..training.examples import Examples, Split, no_leftover
from ..training.history import Callback
from ..training.progress import show_progress
from ..training.threads import torch_threads
from .estimator_module import CLIP, EstimatorModule
from .networks import auto_batch_size, auto_budget, auto_epochs, auto_members, make_network

Array = NDArray[Any]
Selection = Array | slice
PREDICTED_AT_ONCE = 4096
MOST_DENSE = 2**31
"""Bytes that a sparse matrix may take once it is dense."""
SMALLEST = 1e-100
"""Columns below it, and above its inverse, are scaled before their variance is computed."""
_sklearn = import_extra("sklearn.base", extra="sklearn")
preprocessing = import_extra("sklearn.preprocessing", extra="sklearn")
validation = import_extra("sklearn.utils.validation", extra="sklearn")


@dataclass(kw_only=True, eq=False, repr=False)
class DendriticEstimator(_sklearn.BaseEstimator):  # type: ignore[misc, name-defined]
    """A network behind scikit-learn's interface; `DendriticClassifier` explains the options.

    scikit-learn reads the options of an estimator from the signature of `__init__`, which `dataclass` writes.
    """

    budget: int | str = "auto"
    neurons: str = "tree"
    image_shape: Any = None
    branching: Any = None
    wiring: Any = None
    epochs: int | str = "auto"
    batch_size: int | str = "auto"
    lr: float = 0.03
    weight_decay: float = 0.1
    dropout: float = 0.0
    members: int | str = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 20
    random_state: Any = None
    threads: int = 1
    verbose: bool = False
    device: str = "cpu"

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        """The targets of the network for each row; with `first`, classes or scales are learned from `y`."""
        raise NotImplementedError

    def _head(self) -> tuple[int, str]:
        """The number of outputs of the network, and its loss."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------ training

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train a new network on rows of numbers and their targets: a class, a number or several numbers per row."""
        with self._draft() as draft:
            draft._fit(*draft._checked(X, y, sample_weight))
        return self

    @contextlib.contextmanager
    def _draft(self) -> Iterator[Self]:
        """A copy to train, which replaces the estimator's state at the end; an error leaves the estimator unchanged.

        A partially fitted estimator would predict nonsense. The copy is shallow: training replaces its objects and
        never modifies them.
        """
        draft = copy.copy(self)
        yield draft
        self.__dict__ = draft.__dict__

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, partial: bool = False) -> tuple[Array, Array, Array]:  # noqa: N803
        """Checked rows, targets and weights; `partial` if earlier rows have been seen."""
        numbers = not _sklearn.is_classifier(self)
        reset = not (partial and hasattr(self, "network_"))
        x, y = self._valid(X, y, multi_output=numbers, y_numeric=numbers, reset=reset)
        weights = np.ones(len(x))
        if sample_weight is not None:
            weights = validation.check_array(sample_weight, ensure_2d=False, dtype=np.float64)
            if weights.shape != (len(x),):
                raise OptionError(f"sample_weight must have one weight per row, {len(x)}: got shape {weights.shape}")
        return rows_that_count(x, y, weights)

    def _valid(self, *data: Any, **options: Any) -> Any:
        """Data checked by scikit-learn, with dense rows; NaN marks a missing value, infinity is rejected.

        scikit-learn sums all numbers to find those; the warning for inf - inf is suppressed.
        """
        options |= {"dtype": np.float64, "accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
        with np.errstate(invalid="ignore"):
            checked = validation.validate_data(self, *data, **options)
        return (_dense(checked[0]), checked[1]) if isinstance(checked, tuple) else _dense(checked)

    def _fit(self, x: Array, y: Array, weights: Array) -> None:
        """Train a new network on checked rows."""
        batch_size = self._batch_size(len(x))
        epochs = auto_epochs(len(x), batch_size) if self.epochs == "auto" else check_int("epochs", self.epochs)
        patience = check_int("n_iter_no_change", self.n_iter_no_change)
        self._seed = self._draw_seed()
        alike = bool((weights == weights[0]).all())
        if alike:  # equal weights give exactly the same result as none
            weights = np.ones_like(weights)
        targets = self._targets(y, weights, first=True)
        self._scaler = fit_scaler(x, weights)
        self._missing = self._flagged(x)
        self.network_ = self._new_network(len(x))
        self._optimizer: torch.optim.Optimizer | None = None
        train, val = self._parts(y)
        committee = self._committee(len(targets[train]))
        if committee is not None and committee.held_out:
            val = train
        rows = self._rows(x, y, committee)
        weight = None if alike else torch.from_numpy(weights.astype(np.float32))
        split = _split(committee, rows, torch.from_numpy(targets), weight, train, val)
        config = self._config(
            batch_size=no_leftover(len(split.train), batch_size),
            epochs=epochs,
            schedule="one-cycle",
            restore_best=len(split.val) > 0,
            seed=self._seed,
        )
        callbacks: list[Callback] = [EarlyStopping(patience)] if self.early_stopping else []
        if self.verbose:  # without early stopping, the validation examples are rows that some members do not learn from
            callbacks.append(functools.partial(show_progress, validation=self.early_stopping))
        model = committee or self.network_
        curves = self._train(model, split, config, callbacks=callbacks).columns()
        if committee is not None:
            self.network_ = committee.merged()
        self.n_iter_, self.loss_curve_ = len(curves["epoch"]), curves["train_loss"]
        self.validation_loss_curve_ = curves["val_loss"] if len(split.val) else None

    def _partial_fit(self, x: Array, y: Array, weights: Array) -> None:
        """Train for one pass over some checked rows, from the current state."""
        first = not hasattr(self, "network_")
        targets = self._targets(y, weights, first=first)
        if first:
            self._seed = self._draw_seed()
            self._scaler, self._missing = preprocessing.StandardScaler(), self._flagged(x)
            self.network_, self._optimizer = self._new_network(len(x)), None
            self.n_iter_, self.loss_curve_, self.validation_loss_curve_ = 0, [], None
        else:
            self._scaler = copy.deepcopy(self._scaler)
            self.network_, self._optimizer = copy.deepcopy((self.network_, self._optimizer))
        learn_scale(self._scaler, x, weights)
        seed = (self._seed + self.n_iter_) % 2**31
        config = self._config(batch_size=self._batch_size(len(x)), epochs=1, restore_best=False, seed=seed)
        if self._optimizer is None:  # new or fitted
            self._optimizer = self._new_optimizer()
        weight = torch.from_numpy(weights.astype(np.float32))
        split = _split(None, self._rows(x, y, None), torch.from_numpy(targets), weight, slice(None), slice(0))
        history = self._train(self.network_, split, config, optimizer=self._optimizer)
        self.n_iter_ += 1
        self.loss_curve_ = [*self.loss_curve_, history.epochs[0].train_loss]

    def _train(self, model: nn.Module, split: Split, config: FitConfig, **options: Any) -> History:
        """Train the network or its committee."""
        with own_draws(config.seed):  # torch's generator is shared by all threads
            history = fit(model, split, config, **options)
        if history.interrupted:
            raise KeyboardInterrupt
        if not all(values.isfinite().all() for values in self.network_.state_dict().values()):
            raise OptionError(
                f"training must end with finite weights: got NaN or infinity with lr {self.lr:g}; lower lr"
            )
        self.network_.eval()
        return history

    def _new_network(self, rows: int) -> nn.Module:
        """A network for this many rows, with weights from the estimator's seed."""
        sizes = len(self.input_columns), self._head()[0]
        budget = auto_budget(*sizes, rows=rows) if self.budget == "auto" else parse_count("budget", self.budget)
        options = {"image_shape": self.image_shape, "branching": self.branching, "wiring": self.wiring}
        dropout = check_probability("dropout", self.dropout)
        with own_draws(self._seed):
            network = make_network(self.neurons, *sizes, budget=budget, dropout=dropout, **options)
        return network.to(self.device)

    def _flagged(self, x: Array) -> Array:
        """The columns with missing values, each of which gets an indicator input; none for images and wirings."""
        missing = np.flatnonzero(np.isnan(x).any(0))
        return missing if self.image_shape is None and self.wiring is None else missing[:0]

    def _committee(self, rows: int) -> Committee | None:
        """The committee that trains the network on this many rows; None for a network that is trained as a whole."""
        given = None if self.members == "auto" else check_int("members", self.members)
        if not isinstance(self.network_, Network):  # a linear one has no hidden neurons
            return None
        trees = int(tree_of_neuron(self.network_).max()) + 1
        members = given or auto_members(rows, trees, self._head()[0])
        return None if members == 1 else Committee(self.network_, members, held_out=not self.early_stopping)

    def _draw_seed(self) -> int:
        return int(validation.check_random_state(self.random_state).randint(2**31 - 1))

    def _batch_size(self, rows: int) -> int:
        if self.batch_size == "auto":
            return auto_batch_size(rows)
        return no_leftover(rows, check_int("batch_size", self.batch_size, least=2))

    def _config(self, **options: Any) -> FitConfig:
        options |= {"loss": self._head()[1], "threads": self.threads}
        return FitConfig(optimizer="adamw", lr=self.lr, weight_decay=self.weight_decay, **options)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        return make_optimizer(self.network_, self._config())

    def _parts(self, y: Array) -> tuple[Selection, Selection]:
        """Training rows, which are all rows without early stopping, and validation rows."""
        if not self.early_stopping:
            return slice(None), slice(0)
        selection = import_extra("sklearn.model_selection", extra="sklearn")
        train, val = selection.train_test_split(
            np.arange(len(y)),
            test_size=check_probability("validation_fraction", self.validation_fraction),
            random_state=self._seed,
            stratify=y if _sklearn.is_classifier(self) else None,  # keep the class proportions
        )
        if len(train) < 2:
            raise OptionError(f"early_stopping must leave at least 2 rows to train on: got {len(train)}")
        return train, val

    def _rows(self, x: Array, y: Array, committee: Committee | None) -> torch.Tensor:
        """Standardized rows, each with the member of the committee that does not learn from it."""
        rows = self._standardized(x).astype(np.float32)
        if committee is None or not committee.held_out:
            return torch.from_numpy(rows)
        classes = _sklearn.is_classifier(self)
        drawn = draw_members(y, committee.members, np.random.default_rng(self._seed), classes=classes)
        return torch.from_numpy(np.column_stack([rows, drawn]).astype(np.float32))

    # ---------------------------------------------------------------------------------------------------- prediction

    def _outputs(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """The network's outputs for each row.

        Computed in float64 from float32 weights, so that a row's result does not depend on the other rows, as sums in
        float32 do in the seventh digit.
        """
        rows = torch.from_numpy(self.network_inputs(X))
        device = next(self.network_.parameters()).device
        with torch_threads(self.threads), torch.inference_mode():
            network = copy.deepcopy(self.network_).double()  # a copy: other threads may use the original
            parts = [network(part.to(device)).cpu() for part in torch.split(rows, PREDICTED_AT_ONCE)]
        return torch.cat(parts).numpy()

    def network_inputs(self, X: Any) -> Array:  # noqa: N803
        """Rows as the network reads them: standardized and clipped, missing values as 0; then the indicators."""
        validation.check_is_fitted(self)
        return self._standardized(self._valid(X, reset=False))

    def _standardized(self, x: Array) -> Array:
        rows = np.nan_to_num(np.clip(self._scaler.transform(x), -CLIP, CLIP), copy=False)
        return np.column_stack([rows, np.isnan(x[:, self._missing])]) if len(self._missing) else rows

    @property
    def input_columns(self) -> Array:
        """The column of the table that each input of the network comes from."""
        return np.concatenate([np.arange(self.n_features_in_), self._missing])

    def output_units(self) -> tuple[Array, Array, list[str]]:
        """Scale and shift that convert the network's outputs to the units of the target, and the outputs' names."""
        raise NotImplementedError

    def as_module(self, *, probabilities: bool = True) -> EstimatorModule:
        """A copy as one module that maps raw rows to predictions; for classes, to probabilities or logits."""
        validation.check_is_fitted(self)
        scale, shift, _ = self.output_units()
        classifies = _sklearn.is_classifier(self) and probabilities
        return EstimatorModule(self.network_, self._scaler, self._missing, scale, shift, probabilities=classifies)

    @property
    def n_parameters_(self) -> int:
        """Number of parameters of the network, without the scales of inputs and targets."""
        validation.check_is_fitted(self)
        return parameters_of(self.network_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def fit_scaler(x: Array, weights: Array) -> Any:
    """A fitted `StandardScaler`, also for columns near 1e-200 and 1e200, whose squares exceed the range of float64.

    >>> fit_scaler(np.array([[1e-200], [3e-200]]), np.ones(2)).scale_
    array([1.e-200])
    """
    largest = np.fmax.reduce(np.abs(x))
    extreme = ((largest < SMALLEST) | (largest > 1 / SMALLEST)) & (largest > 0)
    unit = np.where(extreme, largest, 1.0)
    scaler = learn_scale(preprocessing.StandardScaler(), x / unit if extreme.any() else x, weights)
    if extreme.any():
        scaler.mean_, scaler.scale_ = scaler.mean_ * unit, scaler.scale_ * unit
    return scaler


def learn_scale(scaler: Any, x: Array, weights: Array) -> Any:
    """Update a scaler with more rows; a column without any value so far has mean 0 and scale 1."""
    with np.errstate(invalid="ignore"):
        scaler.partial_fit(x, sample_weight=weights)
    empty = np.isnan(scaler.mean_)
    scaler.mean_[empty], scaler.var_[empty], scaler.scale_[empty] = 0.0, 1.0, 1.0
    return scaler


def _dense(x: Any) -> Array:
    """Rows as an array; a sparse matrix that is too large for that raises `OptionError`."""
    if isinstance(x, np.ndarray):
        return x
    if x.shape[0] * x.shape[1] * 8 > MOST_DENSE:
        raise OptionError(
            f"a sparse matrix is made dense here and must then take at most {MOST_DENSE / 2**30:g} GiB: got "
            f"{x.shape[0]:,} x {x.shape[1]:,}; reduce its columns first, for example with TruncatedSVD, or call "
            "partial_fit with some rows at a time"
        )
    return np.asarray(x.toarray())


def rows_that_count(x: Array, y: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The rows whose weight is positive: a weight of 0 has the same effect as omitting the row.

    >>> [part.tolist() for part in rows_that_count(np.eye(3), np.array([7, 8, 9]), np.array([1.0, 0.0, 2.0]))]
    [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [7, 9], [1.0, 2.0]]
    """
    if (weights < 0).any():
        raise OptionError(f"sample_weight must not be negative: got {weights.min():g}")
    counts = weights > 0
    if counts.sum() < 2:  # batch normalization cannot learn from one
        raise OptionError(f"at least 2 rows must have a weight above zero: got n_samples = {counts.sum()}")
    return (x, y, weights) if counts.all() else (x[counts], y[counts], weights[counts])


def _split(
    committee: Committee | None,
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor | None,
    train: Selection,
    val: Selection,
) -> Split:
    """Training and validation rows; for a committee, with a target for each of its predictions."""

    def examples(rows: Any, *, training: bool) -> Examples:
        chosen = x[rows], y[rows], None if weight is None else weight[rows]
        return Examples(*chosen) if committee is None else committee.train(training).examples(*chosen)

    return Split(examples(train, training=True), examples(val, training=False), examples(slice(0), training=False))
