"""The study that stores all trials: one Optuna study in a database, for one process or many machines."""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from sqlalchemy.exc import SQLAlchemyError

from dendritree.errors import DendritreeError, OptionError

from .search_result import TrialResult

PATIENCE_SECONDS = 60
"""How long a process waits for another one to finish writing."""
SETTINGS = "dendritree settings"
_FAIL = optuna.trial.TrialState.FAIL


@contextlib.contextmanager
def open_study(storage: str | None, name: str, direction: Any, settings: Mapping[str, Any]) -> Iterator[optuna.Study]:
    """A context with the study, new or resumed; a study with other data, budget or seed is rejected.

    Inside it, Optuna prints no messages per trial and no warnings about experimental features.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    database: optuna.storages.RDBStorage | None = None
    try:
        with warnings.catch_warnings(), _plain_errors(storage):
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            database = None if storage is None else _connect(storage)
            study = optuna.create_study(storage=database, study_name=name, direction=direction, load_if_exists=True)
            _check_settings(study, direction, settings)
            yield study
    finally:
        optuna.logging.set_verbosity(level)
        if database is not None:  # Optuna leaves connections open until they are garbage collected
            database.remove_session()
            database.engine.dispose()


def _connect(storage: str) -> optuna.storages.RDBStorage:
    """Open a database. Retries, since of two processes that create its tables at the same time one fails."""
    options = {"connect_args": {"timeout": PATIENCE_SECONDS}} if storage.startswith("sqlite") else {}
    for _ in range(9):
        with contextlib.suppress(SQLAlchemyError, optuna.exceptions.StorageInternalError):
            return optuna.storages.RDBStorage(storage, engine_kwargs=options)
        time.sleep(0.2)
    return optuna.storages.RDBStorage(storage, engine_kwargs=options)


def _check_settings(study: optuna.Study, direction: str, settings: Mapping[str, Any]) -> None:
    known = study.user_attrs.get(SETTINGS)
    if known is None and not study.trials:
        study.set_user_attr(SETTINGS, dict(settings))
        return
    if not isinstance(known, dict) or study.direction.name.lower() != direction:
        raise OptionError(f"cannot resume study {study.study_name!r}: dendritree did not make it")
    if changed := [key for key, value in settings.items() if known.get(key) != value]:
        key = changed[0]
        raise OptionError(
            f"cannot resume: {key} changed from {known.get(key)} to {settings[key]}; use another --out folder, "
            "and with --storage another --study name"
        )


@contextlib.contextmanager
def _plain_errors(storage: str | None) -> Iterator[None]:
    """Turn errors of Optuna and its database into one-line errors, without the password that a URL may contain."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError, ImportError) as error:
        cause = " ".join(str(error.__cause__ or error).split())
        shown, text = (re.sub(r"//[^@/]*@", "//...@", each) for each in (storage or "", cause))
        raise DendritreeError(f"could not use the database of the study, {shown!r}: {text:.200}") from None


def fail_left_trials(study: optuna.Study) -> None:
    """Mark the trials of killed processes as failed, so that they are tried again."""
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name == "RUNNING":
            give_up(study, trial.number)


def give_up(study: optuna.Study, number: int, chosen: Mapping[str, Any] | None = None) -> None:
    """Mark an unfinished trial as failed; the values chosen for it, or enqueued before, are tried next."""
    trial = study.tell(number, state=_FAIL, skip_if_finished=True)
    again = chosen or trial.system_attrs.get("fixed_params")
    if again and trial.state == _FAIL:
        study.enqueue_trial(dict(again))


def counted(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that count: completed ones, and those that were stopped because they were bad."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "PRUNED")]


def results(study: optuna.Study) -> tuple[TrialResult, ...]:
    """The trials that count, by number."""
    rows = []
    for trial in sorted(counted(study), key=lambda trial: trial.number):
        whole, reached = trial.state.name == "COMPLETE", trial.intermediate_values
        score = trial.value if whole else reached[max(reached)] if reached else None
        cost = {"parameters": None, "epochs": 0, "seconds": 0.0} | trial.user_attrs
        costs = cost["parameters"], cost["epochs"], cost["seconds"]
        rows.append(TrialResult(trial.number, whole, dict(trial.params), score, *costs))
    return tuple(rows)
