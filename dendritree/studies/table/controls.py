"""Do dendrites help on this table? Trees and their controls on the same splits, under the same rule.

Every model gets the same rows, columns, budget, learning rates and epochs. A split learns its columns from its own
training rows, and its test rows are looked at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError, check_int, import_extra
from ...sklearn.tables.encoding import TableEncoding
from ...sklearn.tables.target import Target, score

__all__ = [
    "FAMILIES",
    "Difference",
    "FamilyScores",
    "compare_families",
    "make_estimator",
    "paired_difference",
    "verdict",
]

FAMILIES = ("tree", "sparse", "dense", "linear")
NAMES = {
    "tree": "trees",
    "sparse": "sparse neurons",
    "dense": "a dense MLP",
    "linear": "one linear unit an output",
    "baseline": "guessing",
}
CONFIDENCE = 0.95
ENOUGH_SPLITS = 5
"""With fewer, intervals are so wide that a missing gain says nothing."""

Observer = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Difference:
    """How much better trees are than a control, in the metric's own unit, with its interval."""

    mean: float
    low: float
    high: float

    @property
    def state(self) -> str:
        """`ahead`, `behind`, or `undecided` where the interval holds 0.

        >>> Difference(0.02, 0.01, 0.03).state, Difference(0.02, -0.01, 0.05).state
        ('ahead', 'undecided')
        """
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "undecided"


@dataclass(frozen=True)
class FamilyScores:
    """What a family of models reached on the test rows of each split."""

    family: str
    scores: tuple[float, ...]
    """Accuracies, or RMSEs in the target's unit."""
    parameters: int
    seconds: float
    """Of training, a model."""
    gain: Difference | None = None
    """Of trees over this family; None for the trees themselves."""
    learned: Difference | None = None
    """Its own gain over guessing; None for guessing itself."""
    short: bool = False
    """Whether it was trained for fewer epochs than the estimators take."""

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
    observer: Observer | None = None,
) -> list[FamilyScores]:
    """Train every family on each of `splits` parts of the rows and judge it on the rest; the baseline comes last.

    Args:
        frame: the columns to learn from, one row for each of `target.y`.
        target: what to predict.
        budget: parameters of each model; a linear one has what it has.
        splits: parts of the rows, each of which is the test part once.
        seed: of the splits and of the models.
        epochs: of each model, as in the estimators.
        observer: called with what is being done, and how many models of how many are, first with none.
    """
    from ...sklearn.networks import auto_batch_size, auto_epochs

    splits = check_int("splits", splits, least=2)
    if len(target.y) < 2 * splits:
        raise OptionError(f"splits must leave two rows a part: got {splits} for {len(target.y)} rows")
    selection = import_extra("sklearn.model_selection", extra="tables")
    classes = target.task == "classification"
    folds = (selection.StratifiedKFold if classes else selection.KFold)(splits, shuffle=True, random_state=seed)
    scores: dict[str, list[float]] = {family: [] for family in (*FAMILIES, "baseline")}
    seconds, parameters = dict.fromkeys(scores, 0.0), dict.fromkeys(scores, 0)
    rows = len(target.y) * (splits - 1) // splits
    short = epochs != "auto" and check_int("epochs", epochs) < auto_epochs(rows, auto_batch_size(rows))
    done, models = 0, splits * len(FAMILIES)
    tell = observer or (lambda *_: None)
    tell("comparing", done, models)
    for part, (train, test) in enumerate(folds.split(np.zeros(len(target.y)), target.y)):
        encoding = TableEncoding.learn(frame.iloc[train])
        if not encoding.columns:
            raise OptionError("a table must have a column to learn from besides its target: found none")
        x_train, x_test = encoding.encode(frame.iloc[train]).x, encoding.encode(frame.iloc[test]).x
        for family in FAMILIES:
            model = make_estimator(
                target.task, neurons=family, budget=budget, epochs=epochs, random_state=(seed + part) % 2**32
            )
            start = time.perf_counter()
            model.fit(x_train, target.y[train])
            seconds[family] += (time.perf_counter() - start) / splits
            parameters[family] = max(parameters[family], model.n_parameters_)
            scores[family].append(score(target.y[test], model.predict(x_test)))
            done += 1
            tell("comparing", done, models)
        scores["baseline"].append(score(target.y[test], _baseline(target.y[train], len(test))))
    sign, most = (1.0, 1.0) if classes else (-1.0, math.inf)

    def gain(family: str, over: str) -> Difference | None:
        if family == over:
            return None
        first, second = ([sign * each for each in scores[name]] for name in (family, over))
        return paired_difference(first, second, 1 / (splits - 1), most=most)

    return [
        FamilyScores(
            family,
            tuple(values),
            parameters[family],
            seconds[family],
            gain("tree", family),
            gain(family, "baseline"),
            short and family != "baseline",
        )
        for family, values in scores.items()
    ]


def _baseline(y: NDArray[Any], rows: int) -> NDArray[Any]:
    """What one says without looking: the most frequent class, or the mean."""
    if y.dtype.kind == "f":
        return np.full(rows, y.mean())
    classes, counts = np.unique(y, return_counts=True)
    return np.full(rows, classes[counts.argmax()])


def paired_difference(
    first: Sequence[float], second: Sequence[float], test_to_train: float, *, most: float = math.inf
) -> Difference:
    """Mean of first minus second over splits, with its 95 % interval, cut off at the `most` that two may differ.

    Splits share training rows, so their scores are no independent draws: the variance is corrected as Nadeau and
    Bengio (2003) do, s² (1 / n + test rows / training rows).

    >>> paired_difference([0.9, 0.8], [0.8, 0.7], 0.5).mean
    0.1
    """
    differences = np.subtract(first, second)
    count = len(differences)
    mean = float(differences.mean().round(12))
    if count < 2:
        return Difference(mean, -most, most)
    special = import_extra("scipy.special", extra="tables")
    deviation = math.sqrt(float(differences.var(ddof=1)) * (1 / count + test_to_train))
    half = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * deviation
    return Difference(mean, max(mean - half, -most), min(mean + half, most))


def verdict(results: Sequence[FamilyScores]) -> str:
    """One sentence or two, in plain words: whether dendrites help here."""
    tree = next(result for result in results if result.family == "tree")
    gains = {result.family: result.gain.state for result in results if result.gain is not None}
    learned = [NAMES[each.family] for each in results if each.learned is not None and each.learned.state == "ahead"]
    behind = [NAMES[family] for family in ("sparse", "dense", "linear") if gains[family] == "behind"]
    wanted = [f"{ENOUGH_SPLITS} splits or more"] if len(tree.scores) < ENOUGH_SPLITS else []
    wanted += ["as many epochs as `auto` takes"] if tree.short else []
    remedy = f" To know more, compare with {' and '.join(wanted)}." if wanted else ""
    if not learned and not wanted:
        return "No: nothing was learned here that guessing does not know. More rows or other columns are needed."
    if behind and tree.short:
        return f"Undecided: after so few epochs trees are worse than {' and '.join(behind)}.{remedy}"
    if behind:
        return f"No: on this table trees are worse than {' and '.join(behind)}."
    simpler = next((each for each in ("baseline", "linear") if gains[each] != "ahead"), None)
    if simpler and wanted:
        return f"Undecided: so small a comparison cannot tell trees from {NAMES[simpler]}.{remedy}"
    if simpler == "baseline":
        return f"No: trees are not surely better than guessing here, as are {', '.join(learned)}."
    if simpler == "linear":
        return f"No: trees are not surely better than {NAMES['linear']} here. Take that, it is simpler."
    if gains["sparse"] == "ahead" and gains["dense"] == "ahead":
        return "Yes: trees are better here than every control of the same size."
    if gains["sparse"] == "ahead":
        part = "In part: dendrites beat sparse neurons without them here; a dense MLP of the same size may be as good."
    elif gains["dense"] == "ahead":
        part = "In part: trees beat the dense MLP of the same size here, but so may sparse neurons without dendrites."
    else:
        part = "Undecided: trees, sparse neurons and a dense MLP of the same size are about equally good here."
    return part + remedy
