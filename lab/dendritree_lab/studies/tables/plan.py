"""The plan of the study on tables: tables x families x folds, each estimator fitted and evaluated once."""

from __future__ import annotations

import contextlib
import functools
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dendritree.errors import FormatError, OptionError, check_int, check_one_of, import_extra

from ..engine.boosting import one_thread
from ..engine.runner import alone_on_one_thread
from ..engine.trial import CURVES, Trial, Value, key_text
from .families import FAMILIES, make_estimator, make_model, options_of, size_of
from .tables import CLASSIFICATION, HALVES, REGRESSION, TABLES, half_of

STUDY = "tables"
ALL = "all"
SCORES = {CLASSIFICATION: "accuracy", REGRESSION: "r2"}
"""The score of each task, by its name in a trial."""
Changes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class TableJob:
    """A model to fit on all folds except one and evaluate on that one. It depends only on its own fields."""

    table: str
    family: str
    fold: int
    folds: int
    changes: Changes = ()

    @property
    def key(self) -> dict[str, Value]:
        """The key of its trial."""
        return {"table": self.table, "family": self.family, "fold": self.fold}

    @property
    def stored_key(self) -> tuple[str, str]:
        """Study and key, as `RunStore.present` returns them."""
        return STUDY, key_text(self.key)


@functools.lru_cache(maxsize=2)  # jobs of one table run one after another
def load_folds(table: str, folds: int, data_dir: str | None = None) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """Columns, targets, and the training and test rows of each fold: stratified by class, shuffled with seed 0."""
    selection = import_extra("sklearn.model_selection", extra="tables")
    frame, y = TABLES[table].load(data_dir)
    kind = selection.StratifiedKFold if TABLES[table].task == CLASSIFICATION else selection.KFold
    return frame, y, list(kind(folds, shuffle=True, random_state=0).split(frame, y))


def run_table_job(job: TableJob, data_dir: str | None = None) -> Trial:
    """Fit and evaluate the job's model in this process, on one thread.

    Seconds are processor time, including the encoding of the columns: a busy machine does not distort them.
    """
    table = TABLES[job.table]
    frame, y, folds = load_folds(job.table, job.folds, data_dir)
    train, test = folds[job.fold]
    model = make_model(job.family, table.task, job.fold, dict(job.changes))
    with alone_on_one_thread(), one_thread(), _quiet():
        start = time.thread_time()
        model.fit(frame.iloc[train], y[train])
        fitted = time.thread_time()
        found = model.predict(frame.iloc[test])
        predicted = time.thread_time()
    scores = {SCORES[table.task]: _score(table.task, y[test], found), "predict_seconds": predicted - fitted}
    losses = getattr(model[-1], "loss_curve_", None)
    curves = {name: [math.nan] for name in CURVES} | {"train_loss": [float(losses[-1]) if losses else math.nan]}
    config = options_of(model[-1])
    return Trial(STUDY, job.key, job.fold, config, size_of(model[-1]), fitted - start, curves, scores)


def _score(task: str, y: Any, found: Any) -> float:
    """Accuracy, or R²."""
    if task == CLASSIFICATION:
        return float(np.mean(found == y))
    return 1 - float(np.sum((y - found) ** 2)) / float(np.sum((y - y.mean()) ** 2))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress scikit-learn's warning that an MLP did not converge: by default it stops after 200 epochs."""
    exceptions = import_extra("sklearn.exceptions", extra="tables")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        yield


def read_table_trial(trial: Trial) -> Trial:
    """Return a stored trial after checking that it belongs to this study."""
    table = TABLES[check_one_of("table", trial.key.get("table"), TABLES)]
    check_one_of("family", trial.key.get("family"), FAMILIES)
    check_int("fold", trial.key.get("fold"), least=0)
    if not {SCORES[table.task], "predict_seconds"} <= set(trial.scores):
        raise FormatError(f"a model that was evaluated must have its {SCORES[table.task]}: got {trial.scores}")
    return trial


@dataclass(frozen=True)
class TablesPlan:
    """What to compare."""

    tables: tuple[str, ...]
    families: tuple[str, ...] = tuple(FAMILIES)
    folds: int = 5
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of a family's estimators that differ from their defaults; none in the study itself."""

    @classmethod
    def make(
        cls,
        tables: Iterable[str] = (),
        *,
        half: str = ALL,
        families: Iterable[str] = (),
        folds: int = 5,
        changes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> TablesPlan:
        """Check and resolve the user's options; omitted ones mean all.

        Args:
            tables: names in `TABLES`.
            half: `choose`, `held-out` or `all`.
            families: names in `FAMILIES`.
            folds: number of parts of each table, each of which is the test part once.
            changes: options by family, to try something other than the defaults.

        >>> TablesPlan.make(half="held-out").tables[:3]
        ('wine', 'heart', 'movement_libras')
        """
        check_one_of("half", half, (*HALVES, ALL))
        asked = {check_one_of("table", name, TABLES) for name in tables} or set(TABLES)
        found = tuple(name for name in TABLES if name in asked and half in (ALL, half_of(name)))
        if not found:
            raise OptionError(f"the {half} half must contain one of the tables: got {', '.join(sorted(asked))}")
        chosen = {check_one_of("family", family, FAMILIES) for family in families} or set(FAMILIES)
        for family in changes or {}:
            check_one_of("family", family, FAMILIES)
        own = tuple(family for family in FAMILIES if family in chosen)
        return cls(found, own, check_int("folds", folds, least=2), dict(changes or {}))

    def as_config(self) -> dict[str, Any]:
        """Everything that determines the result of a trial, as JSON values, including all options of all estimators."""
        estimators = {
            family: {
                task: options_of(make_estimator(family, task, changes=self.changes.get(family)))
                for task in (CLASSIFICATION, REGRESSION)
            }
            for family in FAMILIES
        }
        version = import_extra("sklearn", extra="tables").__version__
        return {"collection": 1, "folds": self.folds, "scikit-learn": version, "estimators": estimators}

    def jobs(self) -> list[TableJob]:
        """All models, table by table, small tables first."""
        order = sorted(self.tables, key=lambda name: (TABLES[name].rows, name))
        return [
            TableJob(table, family, fold, self.folds, tuple(self.changes.get(family, {}).items()))
            for table in order
            for fold in range(self.folds)
            for family in self.families
        ]
