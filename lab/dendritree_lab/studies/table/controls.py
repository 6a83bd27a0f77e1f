"""Trees, their controls and gradient boosting on the same splits of a table.

Every network gets the same rows, columns, budget, learning rates and epochs; gradient boosting the same rows and
columns. A split learns its columns from its own training rows, and its test rows are used once.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from dendritree.errors import OptionError, check_int
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.sklearn.networks import FAMILIES, auto_batch_size, auto_epochs

from ...data.tables.deciding import decide_schema
from ...data.tables.encoding import TableEncoding
from ...data.tables.schema import TableSchema
from ...data.tables.target import Target
from ...report.layout import four_digits
from ..engine.runner import Observer, silent
from ..engine.statistics import Difference, paired_difference
from ..engine.store import RunStore
from ..engine.trial import CURVES, Trial, Value
from .table_boosting import Boosting, own_columns

BOOSTING = "boosting"
TRAINED = (*FAMILIES, BOOSTING)
"""The families of a comparison, in the order of their training."""
LABELS = {
    "tree": "trees",
    "sparse": "sparse neurons",
    "dense": "dense MLP",
    "linear": "linear",
    BOOSTING: "gradient boosting",
    "baseline": "guessing",
}
IN_WORDS = LABELS | {"dense": "a dense MLP", "linear": "one linear unit per output"}
SCORE = "test_score"


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a family, each by a model that was not trained on the row."""

    values: NDArray[Any]
    """Numbers, or indices into the sorted classes."""
    certainty: NDArray[np.float64]
    """Probabilities of the predicted classes; empty for numbers."""


@dataclass(frozen=True)
class FamilyScores:
    """The scores of a family of models on the test rows of each split."""

    family: str
    scores: tuple[float, ...]
    """Accuracies, or RMSEs in the target's unit."""
    parameters: int
    """Parameters of the largest model; for gradient boosting, the nodes of its trees."""
    fit_time: float
    """Median training time of a model, in seconds; the first one on a machine may have to wait for compiled kernels."""
    gain: Difference | None = None
    """Gain of trees over this family; None for the trees themselves."""
    learned: Difference | None = None
    """Its own gain over guessing; None for guessing itself."""
    short: bool = False
    """Whether it was trained for fewer epochs than the estimators' default."""
    metric: str = "accuracy"
    """`accuracy` or `RMSE`."""
    predicted: Predicted | None = field(default=None, compare=False, repr=False)
    """Predictions for every row of the table; None for guessing."""

    @property
    def mean(self) -> float:
        """Mean score over the splits."""
        return float(np.mean(self.scores))

    @property
    def more_is_better(self) -> bool:
        """Whether a higher score is a better one."""
        return self.metric == "accuracy"

    def show(self, score: float) -> str:
        """Format a score, or a difference of two scores.

        >>> FamilyScores("tree", (0.5,), 10, 1.0).show(0.91234)
        '0.9123'
        >>> FamilyScores("tree", (1.0,), 10, 1.0, metric="RMSE").show(-16971.3)
        '-16,971'
        """
        return f"{score:.4f}" if self.more_is_better else four_digits(score)


def gain_over(first: FamilyScores, second: FamilyScores) -> Difference:
    """How much better a family is than another on the same splits, with a 95% interval.

    >>> better, worse = (FamilyScores("tree", scores, 10, 1.0, metric="RMSE") for scores in ((1.0, 1.2), (2.0, 2.1)))
    >>> gain_over(better, worse).mean
    0.95
    """
    better, worse = (first, second) if first.more_is_better else (second, first)  # less error is better
    most = 1.0 if first.more_is_better else math.inf
    return paired_difference(better.scores, worse.scores, 1 / (len(first.scores) - 1), most=most)


def make_estimator(task: str, **options: Any) -> Any:
    """The estimator of a task."""
    return (DendriticClassifier if task == "classification" else DendriticRegressor)(**options)


def compare_families(
    frame: Any,
    target: Target,
    *,
    budget: int,
    schema: TableSchema | None = None,
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    threads: int = 1,
    observer: Observer = silent,
    store: RunStore | None = None,
) -> list[FamilyScores]:
    """Train every family on all but one of `splits` parts of the rows and evaluate it on that part; baseline last.

    Args:
        frame: the columns to learn from, one row for each of `target.y`.
        target: what to predict.
        schema: what the cells of the table mean; by default decided from them.
        budget: parameters of each network; a linear one has a fixed size, and gradient boosting has no limit.
        splits: number of parts of the rows, each of which is the test part once.
        seed: seed of the splits and of the models.
        epochs: epochs of each network, as in the estimators.
        threads: threads of torch that train a network.
        observer: called with the name of a family, how many of its models are trained, and how many there are.
        store: stores every model's trial and predictions immediately; models with stored trials are not retrained.
    """
    splits, rows = check_int("splits", splits, least=2), len(target.y)
    if rows < 2 * splits:
        raise OptionError(f"splits must leave two rows per part: got {splits} for {rows} rows")
    classifies = target.task == "classification"
    folds = (StratifiedKFold if classifies else KFold)(splits, shuffle=True, random_state=seed)
    guess = DummyClassifier() if classifies else DummyRegressor()  # the most frequent class, or the mean
    trained = rows * (splits - 1) // splits
    short = epochs != "auto" and check_int("epochs", epochs) < auto_epochs(trained, auto_batch_size(trained))
    schema = decide_schema(frame) if schema is None else schema
    values, _ = schema.read(frame)
    kept = {} if store is None else {(t.key["split"], t.key["family"]): t for t in store.trials()}
    trials: dict[str, list[Trial]] = {family: [] for family in TRAINED}
    predicted = {
        family: Predicted(np.zeros(rows, np.int64 if classifies else np.float64), np.zeros(rows if classifies else 0))
        for family in TRAINED
    }
    guesses: list[float] = []
    done = Counter(family for _, family in kept)
    for family in TRAINED:
        observer(LABELS[family], done[family], splits)
    for part, (train, test) in enumerate(folds.split(frame, target.y)):
        split = _Split.of(part, values, target, schema, train, test)
        options = {"budget": budget, "epochs": epochs, "random_state": (seed + part) % 2**32, "threads": threads}
        for family in TRAINED:
            trial, fact = kept.get((part, family)), f"predictions {part} {family}"
            if trial is None:
                trial, result = split.boosting(options) if family == BOOSTING else split.network(family, options)
                if store is not None:
                    store.set_fact(fact, {name: each.tolist() for name, each in vars(result).items()})
                    store.add([trial])  # last, so that a stored trial always has its predictions
                done[family] += 1
                observer(LABELS[family], done[family], splits)
            else:
                assert store is not None
                result = Predicted(**{name: np.array(each) for name, each in store.fact(fact).items()})
            trials[family].append(trial)
            predicted[family].values[test] = result.values
            if classifies:
                predicted[family].certainty[test] = result.certainty
        guesses.append(split.score(guess.fit(split.x_train, split.y_train).predict(split.x_test)))
    metric = "accuracy" if classifies else "RMSE"
    results = {
        family: FamilyScores(
            family,
            tuple(trial.scores[SCORE] for trial in of_family),
            max(trial.parameters for trial in of_family),
            float(np.median([trial.seconds for trial in of_family])),
            short=short and family != BOOSTING,
            metric=metric,
            predicted=predicted[family],
        )
        for family, of_family in trials.items()
    }
    results["baseline"] = baseline = FamilyScores("baseline", tuple(guesses), 0, 0.0, metric=metric)
    return [
        replace(
            result,
            gain=None if family == "tree" else gain_over(results["tree"], result),
            learned=None if family == "baseline" else gain_over(result, baseline),
        )
        for family, result in results.items()
    ]


@dataclass(frozen=True, eq=False)
class _Split:
    """The rows of a split in the form that the models take."""

    part: int
    task: str
    classes: NDArray[Any]
    """All classes, in order."""
    own: tuple[Any, Any]
    """Training and test rows for gradient boosting."""
    x_train: NDArray[np.float64]
    x_test: NDArray[np.float64]
    y_train: NDArray[Any]
    y_test: NDArray[Any]

    @classmethod
    def of(cls, part: int, frame: Any, target: Target, schema: TableSchema, train: Any, test: Any) -> _Split:
        """Create a split; the encoding of the columns is learned from the training rows."""
        frames = frame.iloc[train], frame.iloc[test]
        encoding = TableEncoding.learn(frames[0], schema)
        own = own_columns(encoding, frames[0]), own_columns(encoding, frames[1])
        x_train, x_test = (encoding.encode(each).x for each in frames)
        classes = np.unique(target.y) if target.task == "classification" else np.empty(0)
        return cls(part, target.task, classes, own, x_train, x_test, target.y[train], target.y[test])

    def network(self, family: str, options: Mapping[str, Any]) -> tuple[Trial, Predicted]:
        """Train a network of a family; return its trial and its predictions for the test rows."""
        model = make_estimator(self.task, neurons=family, **options)
        config, start = model.get_params(), time.perf_counter()
        model.fit(self.x_train, self.y_train)
        seconds = time.perf_counter() - start
        curves = dict.fromkeys(CURVES, [math.nan] * model.n_iter_) | {"train_loss": model.loss_curve_}
        classifies = self.task == "classification"
        outputs = model.predict_proba(self.x_test) if classifies else model.predict(self.x_test)
        return self._trial(family, config, model.n_parameters_, seconds, curves, outputs)

    def boosting(self, options: Mapping[str, Any]) -> tuple[Trial, Predicted]:
        """Train gradient boosting; return its trial and its predictions for the test rows."""
        boosting, (train, test) = Boosting(self.task, options["random_state"]), self.own
        config, start = boosting.model.get_params(), time.perf_counter()
        boosting.fit(train, self.y_train)
        seconds = time.perf_counter() - start
        curves = dict.fromkeys(CURVES, [math.nan] * max(1, boosting.model.n_iter_))
        return self._trial(BOOSTING, config, boosting.size, seconds, curves, boosting.predict(test))

    def score(self, predicted: NDArray[Any]) -> float:
        """The accuracy of predicted classes for the test rows, or the RMSE of numbers."""
        metric = accuracy_score if self.task == "classification" else root_mean_squared_error
        return float(metric(self.y_test, predicted))

    def _trial(
        self, family: str, config: Any, parameters: int, seconds: float, curves: Any, outputs: NDArray[Any]
    ) -> tuple[Trial, Predicted]:
        """The trial and predictions of a trained model; `outputs` are numbers or class probabilities of test rows."""
        if self.task == "classification":
            places = outputs.argmax(1)
            predicted, labels = Predicted(places, outputs.max(1).astype(np.float64)), self.classes[places]
        else:
            predicted, labels = Predicted(outputs.astype(np.float64), np.empty(0)), outputs
        key: dict[str, Value] = {"split": self.part, "family": family}
        scores = {SCORE: self.score(labels)}
        return Trial("table", key, config["random_state"], config, parameters, seconds, curves, scores), predicted
