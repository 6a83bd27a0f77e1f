"""What the classifier and the regressor have in common: options, scaling, training, prediction."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_probability, import_extra
from ..models.sizing import parameters_of, parse_count
from ..training import Callback, EarlyStopping, Examples, FitConfig, Run, Split, fit, make_optimizer
from .networks import auto_batch_size, auto_budget, auto_epochs, auto_weight_decay, make_network, no_leftover
from .scaling import CLIP, Standardiser

__all__ = ["DendriticEstimator", "rows_that_count"]

Array = NDArray[Any]
PREDICTED_AT_ONCE = 4096
MANY = 100_000
"""Rows that `partial_fit` counts on when it chooses a weight decay: it cannot know how many are to come."""
_sklearn = import_extra("sklearn.base", extra="sklearn")


class DendriticEstimator(_sklearn.BaseEstimator):  # type: ignore[misc, name-defined]
    """A network behind scikit-learn's interface. The two families differ in their targets alone."""

    _optimizer: torch.optim.Optimizer | None

    def _targets(self, y: Array, weight: Array, *, first: bool) -> Array:
        """What the network is to give for each row, after what that needs has been learned from `y`."""
        raise NotImplementedError

    def _out_features(self) -> int:
        raise NotImplementedError

    def _loss(self) -> str:
        raise NotImplementedError

    def _stratify(self, y: Array) -> Array | None:
        """Groups that a validation part has in the shares of the whole."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------ training

    @contextlib.contextmanager
    def _draft(self) -> Iterator[Self]:
        """A copy to learn with, which the estimator becomes in one step at the end; what fails leaves it as it was.

        Half fitted, it would predict nonsense. The copy is shallow: what learns with it puts new objects in the place
        of old ones, and never changes those.
        """
        draft = copy.copy(self)
        yield draft
        self.__dict__ = draft.__dict__

    def _fit(self, x: Array, y: Array, weights: Array) -> None:
        """Train a new network on checked rows."""
        batch_size = self._batch_size(len(x))
        epochs = auto_epochs(len(x), batch_size) if self.epochs == "auto" else check_int("epochs", self.epochs)
        patience = check_int("n_iter_no_change", self.n_iter_no_change)
        seed = self._draw_seed()
        alike = bool((weights == weights[0]).all())
        if alike:  # trained as without weights, to the last bit
            weights = np.ones_like(weights)
        targets = self._targets(y, weights, first=True)
        scaling = Standardiser.of(x, weights)
        network = self._new_network(len(x), seed)
        config = replace(
            self._config(len(x), batch_size, seed),
            epochs=epochs,
            schedule="one-cycle",
            restore_best=bool(self.early_stopping),
        )
        examples = _examples(scaling.apply(x, CLIP), targets, None if alike else weights)
        split = self._split(examples, y, seed)
        config = replace(config, batch_size=no_leftover(len(split.train), batch_size))
        callbacks: list[Callback] = [EarlyStopping(patience)] if self.early_stopping else []
        if self.verbose:
            callbacks.insert(0, _progress(epochs))
        history = fit(network, split, config, callbacks=callbacks)
        if history.interrupted:
            raise KeyboardInterrupt
        self._optimizer = None
        self._seed = seed
        self.network_ = network.eval()
        self._scaling = scaling
        self.n_iter_ = len(history.epochs)
        self.loss_curve_ = [epoch.train_loss for epoch in history.epochs]
        self.validation_loss_curve_ = [epoch.val_loss for epoch in history.epochs] if self.early_stopping else None

    def _partial_fit(self, x: Array, y: Array, weights: Array) -> None:
        """One pass over some checked rows, with what was learned before."""
        first = not hasattr(self, "network_")
        if first:
            self._seed = self._draw_seed()
        config = replace(self._config(MANY, self._batch_size(len(x)), self._seed), epochs=1, restore_best=False)
        targets = self._targets(y, weights, first=first)
        if first:
            self._scaling = Standardiser.of(x, weights)
            self.network_, self._optimizer = self._new_network(0, self._seed), None
            self.n_iter_, self.loss_curve_, self.validation_loss_curve_ = 0, [], None
        else:
            self._scaling = self._scaling.updated(x, weights)
            self.network_, self._optimizer = copy.deepcopy((self.network_, self._optimizer))
        if self._optimizer is None:  # after `fit`, or read from a folder: nothing to go on with
            self._optimizer = make_optimizer(self.network_, config)
        examples = _examples(self._scaling.apply(x, CLIP), targets, weights)
        config = replace(config, seed=(self._seed + self.n_iter_) % 2**31)
        history = fit(
            self.network_, Split(examples, _none(examples), _none(examples)), config, optimizer=self._optimizer
        )
        if history.interrupted:
            raise KeyboardInterrupt
        self.network_.eval()
        self.n_iter_ += 1
        self.loss_curve_ = [*self.loss_curve_, history.epochs[0].train_loss]

    def _new_network(self, rows: int, seed: int) -> nn.Module:
        """A network with weights of its own from the seed; torch's generator is left as it was."""
        sizes = self.n_features_in_, self._out_features()
        budget = auto_budget(rows, *sizes) if self.budget == "auto" else parse_count("budget", self.budget)
        dropout = check_probability("dropout", self.dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = make_network(self.neurons, *sizes, budget=budget, dropout=dropout)
        return network.to(self.device)

    def _draw_seed(self) -> int:
        validation = import_extra("sklearn.utils", extra="sklearn")
        return int(validation.check_random_state(self.random_state).randint(2**31 - 1))

    def _batch_size(self, rows: int) -> int:
        if self.batch_size == "auto":
            return auto_batch_size(rows)
        return no_leftover(rows, check_int("batch_size", self.batch_size, least=2))

    def _config(self, rows: int, batch_size: int, seed: int) -> FitConfig:
        return FitConfig(
            loss=self._loss(),
            batch_size=batch_size,
            optimizer="adamw",
            lr=self.lr,
            weight_decay=auto_weight_decay(rows) if self.weight_decay == "auto" else self.weight_decay,
            seed=seed,
        )

    def _split(self, examples: Examples, y: Array, seed: int) -> Split:
        """All rows to train on, or a part of them to stop by."""
        if not self.early_stopping:
            return Split(examples, _none(examples), _none(examples))
        selection = import_extra("sklearn.model_selection", extra="sklearn")
        share = check_probability("validation_fraction", self.validation_fraction)
        train, val = selection.train_test_split(
            np.arange(len(examples)), test_size=share, random_state=seed, stratify=self._stratify(y)
        )
        if len(train) < 2:
            raise OptionError(f"early_stopping must leave at least 2 rows to train on: got {len(train)}")
        return Split(_rows(examples, train), _rows(examples, val), _none(examples))

    # ---------------------------------------------------------------------------------------------------- prediction

    def _outputs(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """What the network gives for each row.

        Computed in float64, from weights in float32: a row's figure then does not depend on the rows beside it, as
        sums in float32 do in the seventh digit.
        """
        validation = import_extra("sklearn.utils.validation", extra="sklearn")
        validation.check_is_fitted(self)
        x = validation.validate_data(self, X, dtype=np.float64, reset=False)
        device = next(self.network_.parameters()).device
        rows = torch.from_numpy(self._scaling.apply(x, CLIP))
        state = {
            name: tensor.double() if tensor.is_floating_point() else tensor
            for name, tensor in self.network_.state_dict().items()
        }
        with torch.inference_mode():
            parts = [
                torch.func.functional_call(self.network_, state, (part.to(device),)).cpu()
                for part in torch.split(rows, PREDICTED_AT_ONCE)
            ]
        return torch.cat(parts).numpy()

    @property
    def n_parameters_(self) -> int:
        """Parameters of the network, all of them; what scales inputs and targets is not counted."""
        import_extra("sklearn.utils.validation", extra="sklearn").check_is_fitted(self)
        return parameters_of(self.network_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


def rows_that_count(x: Array, y: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Rows with a weight, and these: a weight of 0 is the same as no row at all.

    >>> [part.tolist() for part in rows_that_count(np.eye(3), np.array([7, 8, 9]), np.array([1.0, 0.0, 2.0]))]
    [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [7, 9], [1.0, 2.0]]
    """
    if (weights < 0).any():
        raise OptionError(f"sample_weight must not be negative: got {weights.min():g}")
    counts = weights > 0
    if counts.sum() < 2:  # batch normalisation cannot learn from one
        raise OptionError(f"there must be at least 2 rows with a weight: got n_samples = {counts.sum()}")
    return (x, y, weights) if counts.all() else (x[counts], y[counts], weights[counts])


def _examples(x: Array, targets: Array, weight: Array | None) -> Examples:
    of_classes = np.issubdtype(targets.dtype, np.integer)
    y = torch.from_numpy(targets if of_classes else targets.astype(np.float32))
    given: Tensor | None = None if weight is None else torch.from_numpy(weight.astype(np.float32))
    return Examples(torch.from_numpy(x.astype(np.float32)), y, given)


def _rows(examples: Examples, chosen: Array) -> Examples:
    rows = torch.from_numpy(chosen)
    weight = None if examples.weight is None else examples.weight[rows]
    return Examples(examples.x[rows], examples.y[rows], weight)


def _none(examples: Examples) -> Examples:
    return Examples(examples.x[:0], examples.y[:0])


def _progress(epochs: int) -> Callable[[Run], None]:
    """A callback that writes a line about twenty times a run."""
    every = max(1, epochs // 20)

    def tell(run: Run) -> None:
        last = run.history.epochs[-1]
        if (last.epoch + 1) % every == 0 or last.epoch + 1 == epochs:
            validation = "" if np.isnan(last.val_loss) else f", validation loss {last.val_loss:.4g}"
            sys.stdout.write(f"epoch {last.epoch + 1}/{epochs}: loss {last.train_loss:.4g}{validation}\n")
            sys.stdout.flush()

    return tell
