"""The study that stores all trials: one Optuna study in a database, for one process or many machines."""

from __future__ import annotations

import contextlib
import math
import re
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dendritree.errors import DendritreeError, FormatError, OptionError, import_extra

from .search_result import TrialResult
from .space import OF_COPIES, OF_IMAGES, PARAMETERS

PATIENCE_SECONDS = 60
"""How long a process waits for another one to finish writing."""
SETTINGS = "dendritree settings"
EVERYWHERE = PARAMETERS.keys() - {*OF_IMAGES, *OF_COPIES}
"""The parameters that all trials have."""


@contextlib.contextmanager
def quiet() -> Iterator[Any]:
    """Optuna without its per-trial messages and its experimental warnings; both are restored afterwards."""
    optuna = import_extra("optuna", extra="tune")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield optuna
    finally:
        optuna.logging.set_verbosity(level)


@contextlib.contextmanager
def open_study(storage: str | None, name: str, direction: str, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A context with the study, new or resumed; a study with other data, budget or seed is rejected."""
    optuna = import_extra("optuna", extra="tune")
    with contextlib.ExitStack() as stack:
        with _plain_errors(storage):
            database = _connect(optuna, storage)
            if isinstance(database, optuna.storages.RDBStorage):
                stack.callback(_close, database)
        yield _checked_study(optuna, database, storage, name, direction, settings)


def _close(database: Any) -> None:
    """Close the connections that Optuna leaves open until they are garbage collected."""
    database.remove_session()
    database.engine.dispose()


def _checked_study(
    optuna: Any, database: Any, storage: str | None, name: str, direction: str, settings: Mapping[str, Any]
) -> Any:
    with _plain_errors(storage):
        study = optuna.create_study(storage=database, study_name=name, direction=direction, load_if_exists=True)
        known, found, trials = study.user_attrs.get(SETTINGS), study.direction.name.lower(), counted(study)
    if (known is None and len(study.trials)) or not isinstance(known, dict | None) or found != direction:
        raise OptionError(f"a study must have been made by dendritree to be resumed: {name!r} was not")
    for trial in trials:
        _check_trial(trial, name)
    for key, value in settings.items():
        if known is not None and known.get(key) != value:
            raise OptionError(
                f"a study resumes with the {key} it was started with, {known.get(key)}: got {value}; "
                "use another folder or another name"
            )
    if known is None:
        study.set_user_attr(SETTINGS, dict(settings))
    return study


def _check_trial(trial: Any, name: str) -> None:
    """Reject a trial that a search cannot have written: the file was damaged or edited."""
    whole = trial.state.name == "COMPLETE"
    scores = [*((trial.values or [None]) if whole else []), *trial.intermediate_values.values()]
    facts = [trial.user_attrs.get(key, None if whole else 0) for key in ("parameters", "epochs", "seconds")]
    numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in [*scores, *facts])
    if not numbers or not isinstance(trial.number, int) or not trial.params.keys() >= EVERYWHERE:
        raise FormatError(
            f"the trials of a study must be as a search wrote them: number {trial.number} of {name!r} is not"
        )


@contextlib.contextmanager
def whole_database() -> Iterator[None]:
    """Turn errors of Optuna or its database driver during a search into one-line errors.

    The disk may be full, the server unreachable, or a cell edited. Errors of dendritree and torch pass through: Optuna
    calls neither.
    """
    try:
        yield
    except DendritreeError:
        raise
    except Exception as error:  # a database may hold anything, and Optuna may raise anything
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        if not any(frame.f_globals.get("__name__", "").startswith("optuna") for frame in frames):
            raise
        cause = " ".join(str(error.__cause__ or error).split())
        raise DendritreeError(f"the database of a study must be whole and writable: {cause:.200}") from None


def _connect(optuna: Any, storage: str | None) -> Any:
    """Open a database. Retries, since of two processes that create its tables at the same time one fails."""
    if storage is None:
        return None
    if not storage.startswith("sqlite"):
        return storage
    for attempt in range(10):
        try:
            options = {"connect_args": {"timeout": PATIENCE_SECONDS}}
            return optuna.storages.RDBStorage(storage, engine_kwargs=options)
        except Exception as error:
            if attempt == 9 or not re.search("already exists|UNIQUE|locked", str(error)):
                raise
            time.sleep(0.2)
    raise AssertionError


@contextlib.contextmanager
def _plain_errors(storage: str | None) -> Iterator[None]:
    """Turn errors of a database driver into one-line errors, without the password that a URL may contain."""
    try:
        yield
    except DendritreeError:
        raise
    except Exception as error:
        shown = re.sub(r"//[^@/]*@", "//...@", storage or "")
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        text = re.sub(r"//[^@/]*@", "//...@", text)
        raise OptionError(f"storage must be a database that Optuna can open: got {shown!r} ({text:.160})") from None


def fail_left_trials(study: Any) -> None:
    """Mark the trials of killed processes as failed, so that they are tried again."""
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name == "RUNNING":
            give_up(study, trial.number)


def give_up(study: Any, number: int, chosen: Mapping[str, Any] | None = None) -> None:
    """Mark an unfinished trial as failed; the values chosen for it, or enqueued before, are tried next."""
    optuna = import_extra("optuna", extra="tune")
    told = study.tell(number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
    again = chosen or told.system_attrs.get("fixed_params")
    if again and told.state.name == "FAIL":
        study.enqueue_trial(again)


def counted(study: Any) -> list[Any]:
    """The trials that count: completed ones, and those that were stopped because they were bad."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "PRUNED")]


def results(study: Any) -> tuple[TrialResult, ...]:
    """The trials that count, by number."""
    found = []
    for trial in sorted(counted(study), key=lambda trial: trial.number):
        whole, reached = trial.state.name == "COMPLETE", trial.intermediate_values
        score = trial.value if whole else reached[max(reached)] if reached else None
        costs = (trial.user_attrs.get(*each) for each in (("parameters", None), ("epochs", 0), ("seconds", 0.0)))
        found.append(TrialResult(trial.number, whole, dict(trial.params), score, *costs))
    return tuple(found)
