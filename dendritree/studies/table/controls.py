"""Do dendrites help on this table? Trees and their controls on the same splits, under the same rule.

Every model gets the same rows, columns, budget, learning rates and epochs. A split learns its columns from its own
training rows, and its test rows are used once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.frames.encoding import TableEncoding
from ...data.frames.target import Target, score
from ...errors import OptionError, check_int, import_extra
from ...sklearn.networks import FAMILIES, auto_batch_size, auto_epochs
from ..engine.runner import Observer, silent
from ..engine.statistics import Difference, paired_difference
from ..engine.store import RunStore
from ..engine.trial import CURVES, Trial

LABELS = {
    "tree": "trees",
    "sparse": "sparse neurons",
    "dense": "dense MLP",
    "linear": "linear",
    "baseline": "guessing",
}
IN_WORDS = LABELS | {"dense": "a dense MLP", "linear": "one linear unit per output"}
SCORE = "test_score"
ENOUGH_SPLITS = 5
"""With fewer, intervals are so wide that a missing gain says nothing."""


@dataclass(frozen=True)
class FamilyScores:
    """The scores of a family of models on the test rows of each split."""

    family: str
    scores: tuple[float, ...]
    """Accuracies, or RMSEs in the target's unit."""
    parameters: int
    seconds: float
    """Mean training time of a model."""
    gain: Difference | None = None
    """Of trees over this family; None for the trees themselves."""
    learned: Difference | None = None
    """Its own gain over guessing; None for guessing itself."""
    short: bool = False
    """Whether it was trained for fewer epochs than the estimators' default."""

    @property
    def mean(self) -> float:
        """Over the splits."""
        return float(np.mean(self.scores))


def make_estimator(task: str, **options: Any) -> Any:
    """The estimator of a task."""
    from ...sklearn import DendriticClassifier, DendriticRegressor

    return (DendriticClassifier if task == "classification" else DendriticRegressor)(**options)


def compare_families(
    frame: Any,
    target: Target,
    *,
    budget: int,
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    observer: Observer = silent,
    store: RunStore | None = None,
) -> list[FamilyScores]:
    """Train every family on all but one of `splits` parts of the rows, evaluate it on that one; the baseline is last.

    Args:
        frame: the columns to learn from, one row for each of `target.y`.
        target: what to predict.
        budget: parameters of each model; a linear one has a fixed size.
        splits: parts of the rows, each of which is the test part once.
        seed: of the splits and of the models.
        epochs: of each model, as in the estimators.
        observer: called with the step's name, the number of models trained so far (first 0) and of all of them.
        store: keeps every model's trial at once; models whose trials it has are not trained again.
    """
    splits, rows = check_int("splits", splits, least=2), len(target.y)
    if rows < 2 * splits:
        raise OptionError(f"splits must leave two rows per part: got {splits} for {rows} rows")
    selection, dummy = (import_extra(f"sklearn.{each}", extra="tables") for each in ("model_selection", "dummy"))
    classes = target.task == "classification"
    folds = (selection.StratifiedKFold if classes else selection.KFold)(splits, shuffle=True, random_state=seed)
    guess = dummy.DummyClassifier() if classes else dummy.DummyRegressor()  # the most frequent class, or the mean
    trained = rows * (splits - 1) // splits
    short = epochs != "auto" and check_int("epochs", epochs) < auto_epochs(trained, auto_batch_size(trained))
    kept = {} if store is None else {(t.key["split"], t.key["family"]): t for t in store.trials()}
    trials: dict[str, list[Trial]] = {family: [] for family in FAMILIES}
    guesses: list[float] = []
    done, models = len(kept), splits * len(FAMILIES)
    observer("comparing", 0, models)
    if kept:
        observer("comparing", done, models, "trained before")
    for part, (train, test) in enumerate(folds.split(frame, target.y)):
        encoding = TableEncoding.learn(frame.iloc[train])
        x_train, x_test = encoding.encode(frame.iloc[train]).x, encoding.encode(frame.iloc[test]).x
        y_train, y_test = target.y[train], target.y[test]
        for family in FAMILIES:
            trial = kept.get((part, family))
            if trial is None:
                options = {"neurons": family, "budget": budget, "epochs": epochs, "random_state": (seed + part) % 2**32}
                trial = _trained(part, make_estimator(target.task, **options), (x_train, y_train), (x_test, y_test))
                if store is not None:
                    store.add([trial])
                done += 1
                observer("comparing", done, models)
            trials[family].append(trial)
        guesses.append(score(y_test, guess.fit(x_train, y_train).predict(x_test)))
    scores = {family: [trial.scores[SCORE] for trial in found] for family, found in trials.items()}
    scores["baseline"] = guesses

    def gain(family: str, over: str) -> Difference | None:
        better, worse = (scores[family], scores[over]) if classes else (scores[over], scores[family])  # RMSE: less
        most = 1.0 if classes else math.inf
        return None if family == over else paired_difference(better, worse, 1 / (splits - 1), most=most)

    return [
        FamilyScores(
            family,
            tuple(values),
            max((trial.parameters for trial in trials.get(family, ())), default=0),
            sum(trial.seconds for trial in trials.get(family, ())) / splits,
            gain("tree", family),
            gain(family, "baseline"),
            short and family != "baseline",
        )
        for family, values in scores.items()
    ]


def _trained(split: int, model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> Trial:
    """Train an estimator; its trial, with its score on the test rows."""
    start, options = time.perf_counter(), model.get_params()
    model.fit(*train)
    seconds = time.perf_counter() - start
    curves = dict.fromkeys(CURVES, [math.nan] * model.n_iter_) | {"train_loss": model.loss_curve_}
    key = {"split": split, "family": model.neurons}
    scores = {SCORE: score(test[1], model.predict(test[0]))}
    return Trial("table", key, model.random_state, options, model.n_parameters_, seconds, curves, scores)


def verdict(results: Sequence[FamilyScores]) -> str:
    """Whether dendrites help here, in one or two plain sentences."""
    tree = next(result for result in results if result.family == "tree")
    gains = {result.family: result.gain.state for result in results if result.gain is not None}
    learned = [IN_WORDS[each.family] for each in results if each.learned is not None and each.learned.state == "ahead"]
    behind = " and ".join(IN_WORDS[family] for family in ("sparse", "dense", "linear") if gains[family] == "behind")
    wanted = [f"{ENOUGH_SPLITS} splits or more"] if len(tree.scores) < ENOUGH_SPLITS else []
    wanted += ["as many epochs as `auto` takes"] if tree.short else []
    remedy = f" To know more, compare with {' and '.join(wanted)}." if wanted else ""
    if not learned and not wanted:
        return "No: nothing was learned here that guessing does not know. More rows or other columns are needed."
    if behind and tree.short:
        return f"Undecided: after so few epochs trees are worse than {behind}.{remedy}"
    if behind:
        return f"No: on this table trees are worse than {behind}."
    simpler = next((each for each in ("baseline", "linear") if gains[each] != "ahead"), None)
    if simpler and wanted:
        return f"Undecided: so small a comparison cannot tell trees from {IN_WORDS[simpler]}.{remedy}"
    if simpler == "baseline":
        return f"No: trees are not surely better than guessing here, as are {', '.join(learned)}."
    if simpler == "linear":
        return f"No: trees are not surely better than {IN_WORDS['linear']} here. Take that, it is simpler."
    if gains["sparse"] == gains["dense"] == "ahead":
        return "Yes: trees are better here than every control of the same size."
    if gains["sparse"] == "ahead":
        part = "In part: dendrites beat sparse neurons without them here; a dense MLP of the same size may be as good."
    elif gains["dense"] == "ahead":
        part = "In part: trees beat the dense MLP of the same size here, but so may sparse neurons without dendrites."
    else:
        part = "Undecided: trees, sparse neurons and a dense MLP of the same size are about equally good here."
    return part + remedy
