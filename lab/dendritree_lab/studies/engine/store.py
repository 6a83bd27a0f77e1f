"""The store of a run: one SQLite file, written by one process at a time and read by any number.

    run/
      trials.sqlite   the trials, each completely or not at all
      trials.lock     locked by the process that writes

The file uses SQLite's rollback journal, not its write-ahead log: everything committed is in a single file, which can be
copied, or read from a network drive. SQLite undoes what a killed process had not committed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree.storage.models import decode_argument, encode_argument

from .environment import Environment, current_environment
from .trial import CURVES, Trial, Value, key_text

STORE_FILE = "trials.sqlite"
LOCK_FILE = "trials.lock"
SHOWN_CHANGES = 12
APPLICATION_ID = 0x64656E64  # "dend": distinguishes a run from other SQLite files
FORMAT_VERSION = 2
# SQLite stores NaN as NULL, so NULL among curves and scores means NaN. A column declared REAL would lose the sign of
# -0.0, so floats go to columns without a type, which store the double unchanged.
SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
CREATE TABLE run (config TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE environment (
    id INTEGER PRIMARY KEY, machine TEXT NOT NULL,
    dendritree TEXT NOT NULL, torch TEXT NOT NULL, numpy TEXT NOT NULL, python TEXT NOT NULL,
    cpu TEXT NOT NULL, cores INTEGER NOT NULL, ram INTEGER NOT NULL, "commit" TEXT
);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY, study TEXT NOT NULL, key TEXT NOT NULL,  -- named values, as JSON
    seed INTEGER NOT NULL, config TEXT NOT NULL, parameters INTEGER NOT NULL, seconds,
    created TEXT NOT NULL, environment INTEGER NOT NULL REFERENCES environment (id),
    UNIQUE (study, key)
);
CREATE TABLE epoch (
    trial INTEGER NOT NULL REFERENCES trial (id), epoch INTEGER NOT NULL,
    train_loss, val_loss, train_acc, val_acc,
    PRIMARY KEY (trial, epoch)
) WITHOUT ROWID;
CREATE TABLE score (
    trial INTEGER NOT NULL REFERENCES trial (id), name TEXT NOT NULL, value, PRIMARY KEY (trial, name)
) WITHOUT ROWID;
CREATE TABLE weights (trial INTEGER PRIMARY KEY REFERENCES trial (id), safetensors BLOB NOT NULL);
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);  -- what a study keeps besides its trials, as JSON
"""


class RunStore:
    """The trials of one run. Open it with `create_or_open` or `open_for_reading`, as a context manager that closes it.

    Trials are read from the file once and then kept in memory: a store that is open for reading shows one snapshot.

    >>> import tempfile
    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> trial = Trial("fair", {"task": "mnist", "trial": 0}, 1, {"network": "mlp"}, 11_395, 0.1, curves)
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> with RunStore.create_or_open(folder, {"trials": 10}) as store:
    ...     store.add([trial])
    >>> with RunStore.open_for_reading(folder) as store:
    ...     store.trials() == [trial], trial in store
    (True, True)
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        self.folder = folder
        """The run folder."""
        self._connection = connection
        self._lock = lock
        self._environment = 0

    @classmethod
    def create_or_open(
        cls, folder: str | os.PathLike[str], config: Mapping[str, Any], *, advice: str = "use another --run folder"
    ) -> RunStore:
        """Open the run in `folder` for writing; create it, and the folder, if necessary.

        A run resumes only with the config and the versions of dendritree and torch that it was started with; otherwise
        an error states what changed, and the run is left unchanged.

        Args:
            folder: the run folder.
            config: everything that determines the results, as JSON values.
            advice: what an error about changes tells the user to do.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> RunStore.create_or_open(folder, {"trials": 10, "fit": {"lr": 0.05}}).close()
        >>> RunStore.create_or_open(folder, {"trials": 3, "fit": {"lr": 0.05}})
        Traceback (most recent call last):
        dendritree.errors.FormatError: cannot resume: trials changed from 10 to 3; use another --run folder
        """
        folder, text = Path(folder), _json(config)
        lock = _lock(folder)
        try:
            store = cls(folder, _connect(folder / STORE_FILE, text), lock)
        except BaseException:
            lock.release()
            raise
        try:
            store._resume(json.loads(text), current_environment(), advice)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_for_reading(cls, folder: str | os.PathLike[str]) -> RunStore:
        """Open the run in `folder` read-only, even while another process writes to it.

        >>> RunStore.open_for_reading("no/such/run")
        Traceback (most recent call last):
        dendritree.errors.FormatError: no/such/run is not a run folder: it has no trials.sqlite
        """
        folder = Path(folder)
        if not (folder / STORE_FILE).is_file():
            raise FormatError(f"{folder} is not a run folder: it has no {STORE_FILE}")
        return cls(folder, _connect(folder / STORE_FILE))

    # ------------------------------------------------------------------------------------------------------- writing

    def add(self, trials: Sequence[Trial]) -> None:
        """Store trials with their curves and weights, all of them or none; a trial that is already stored raises."""
        created, known = _now(), self._trials
        with self._transaction() as connection:
            for trial in trials:
                try:
                    _insert(connection, trial, self._environment, created)
                except sqlite3.IntegrityError:
                    raise OptionError(f"{self.folder} already has the trial {key_text(trial.key)}") from None
        known.update({(trial.study, key_text(trial.key)): replace(trial, weights=None) for trial in trials})

    def set_fact(self, name: str, value: Any) -> None:
        """Store something that a study measured besides its trials, as JSON values; replaces an earlier value."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, _json(value)))

    # ------------------------------------------------------------------------------------------------------- reading

    def fact(self, name: str, default: Any = None) -> Any:
        """A value that `set_fact` stored."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
            return json.loads(row[0]) if row else default

    def __len__(self) -> int:
        return len(self._trials)

    def has(self, study: str, key: Mapping[str, Value]) -> bool:
        """Whether the trial with this key is stored."""
        return (study, key_text(key)) in self._trials

    def __contains__(self, job: Any) -> bool:
        """Whether a trial, or the trial of a job with a `study` and a `key`, is stored."""
        return self.has(job.study, job.key)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config the run was started with."""
        with self.reading() as connection:
            return _mapping(connection.execute("SELECT config FROM run").fetchone()[0])

    @property
    def created(self) -> str:
        """When the run was started, in UTC."""
        with self.reading() as connection:
            return str(connection.execute("SELECT created FROM run").fetchone()[0])

    @property
    def environments(self) -> list[Environment]:
        """Versions and machines of the trials of this run; the first one started it."""
        names = ", ".join(f'"{each.name}"' for each in fields(Environment))
        with self.reading() as connection:
            return [Environment(*row) for row in connection.execute(f"SELECT {names} FROM environment ORDER BY id")]

    def trials(self, **wanted: Value) -> list[Trial]:
        """The trials with their curves but without weights, in the order of their keys.

        Args:
            wanted: values that the key must have, such as `task="mnist"`.
        """
        trials = [each for each in self._trials.values() if wanted.items() <= each.key.items()]
        return sorted(trials, key=lambda trial: (trial.study, list(trial.key.values())))

    def kept_trials(self) -> list[Trial]:
        """The trials whose models were kept, with their weights."""
        with self.reading() as connection:
            rows = connection.execute("SELECT study, key, safetensors FROM trial JOIN weights ON trial = id").fetchall()
        weights = {(study, key): content for study, key, content in rows}
        return [
            replace(trial, weights=weights[name])
            for trial in self.trials()
            if (name := (trial.study, key_text(trial.key))) in weights
        ]

    @cached_property
    def _trials(self) -> dict[tuple[str, str], Trial]:
        """All trials by study and key."""
        with self.reading() as connection:
            curves: dict[int, list[list[float]]] = {}
            for id_, *point in connection.execute(
                f"SELECT trial, {', '.join(CURVES)} FROM epoch ORDER BY trial, epoch"
            ):
                curves.setdefault(id_, []).append([_number(value) for value in point])
            scores: dict[int, dict[str, float]] = {}
            for id_, name, value in connection.execute("SELECT trial, name, value FROM score"):
                scores.setdefault(id_, {})[name] = _number(value)
            trials = {}
            for id_, study, key, seed, config, parameters, seconds in connection.execute(
                "SELECT id, study, key, seed, config, parameters, seconds FROM trial"
            ):
                settings = {name: decode_argument(value) for name, value in _mapping(config).items()}
                columns = dict(zip(CURVES, map(list, zip(*curves[id_], strict=True)), strict=True))
                numbers = int(seed), settings, int(parameters), _number(seconds), columns, scores.get(id_, {})
                trials[study, key] = Trial(study, _mapping(key), *numbers)
            return trials

    # ------------------------------------------------------------------------------------------------------ the file

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one snapshot of the file. Content that cannot be interpreted raises `FormatError`."""
        with self._transaction("DEFERRED") as connection:
            try:
                yield connection
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                path = self.folder / STORE_FILE
                raise FormatError(f"{path} was changed by another program ({reason:.200})") from error

    @contextlib.contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """A transaction: after an error, nothing of it is stored."""
        if kind == "IMMEDIATE" and self._lock is None:
            raise OptionError(f"{self.folder} is open for reading; open it with RunStore.create_or_open to write")
        with _readable_errors(self.folder / STORE_FILE):
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _resume(self, config: dict[str, Any], environment: Environment, advice: str) -> None:
        """Check that nothing changed since the run was started, and remember this environment."""
        changed, known = changes(self.config, config), self.environments
        if known:
            was, now = ({name: getattr(of, name) for name in ("dendritree", "torch")} for of in (known[0], environment))
            changed += changes(was, now)
        if changed:
            more = [f"and {len(changed) - SHOWN_CHANGES} more"] if len(changed) > SHOWN_CHANGES else []
            raise FormatError(f"cannot resume: {', '.join(changed[:SHOWN_CHANGES] + more)}; {advice}")
        if environment not in known:
            values = asdict(environment) | {"machine": environment.machine}
            names, marks = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
            with self._transaction() as connection:
                connection.execute(f"INSERT INTO environment ({names}) VALUES ({marks})", tuple(values.values()))
        self._environment = self.environments.index(environment) + 1  # ids count from 1

    def close(self) -> None:
        """Close the file and let others write. Closing twice does nothing."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def changes(old: Any, new: Any, name: str = "") -> list[str]:
    """How two JSON values differ, key by key.

    >>> changes({"trials": 10, "fit": {"lr": 0.05}}, {"trials": 3, "fit": {"lr": 0.05, "epochs": 100}})
    ['fit.epochs changed from nothing to 100', 'trials changed from 10 to 3']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        inner = [(f"{name}.{key}".lstrip("."), old.get(key), new.get(key)) for key in sorted({*old, *new})]
        return [line for key, was, now in inner for line in changes(was, now, key)]
    texts = ["nothing" if value is None else json.dumps(value) for value in (old, new)]
    return [f"{name} changed from {texts[0]} to {texts[1]}"] if texts[0] != texts[1] else []


def _insert(connection: sqlite3.Connection, trial: Trial, environment: int, created: str) -> None:
    config = _json({name: encode_argument(name, value) for name, value in trial.config.items()})
    what = trial.study, key_text(trial.key), int(trial.seed), config
    values = (*what, int(trial.parameters), float(trial.seconds), created, environment)
    row = connection.execute("INSERT INTO trial VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid
    points = zip(*(map(float, trial.curves[curve]) for curve in CURVES), strict=True)
    epochs = ((row, epoch, *point) for epoch, point in enumerate(points))
    connection.executemany("INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?)", epochs)
    scores = [(row, name, float(value)) for name, value in trial.scores.items()]
    connection.executemany("INSERT INTO score VALUES (?, ?, ?)", scores)
    if trial.weights is not None:
        connection.execute("INSERT INTO weights VALUES (?, ?)", (row, trial.weights))


def _lock(folder: Path) -> FileLock:
    """Create the folder if necessary, and lock it for this process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK_FILE)
        lock.acquire(blocking=False)
    except Timeout:
        raise DendritreeError(
            f"another process is writing to {folder}; wait for it (a few seconds after Ctrl-C), or use another folder"
        ) from None
    except OSError as error:
        raise DendritreeError(f"cannot write to {folder}: {error.strerror}") from None
    return lock


def _connect(path: Path, config: str | None = None) -> sqlite3.Connection:
    """Open a run's file; with a config, create it if necessary."""
    # Readers do not open it read-only: SQLite must be able to undo what a killed process left unfinished.
    name = f"{path.resolve().as_uri()}?mode={'rw' if config is None else 'rwc'}"
    with _readable_errors(path), contextlib.ExitStack() as opened:
        connection = sqlite3.connect(name, uri=True, timeout=60.0, isolation_level=None)
        opened.callback(connection.close)
        if config is not None and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.executescript(SCHEMA)
            connection.execute("INSERT INTO run VALUES (?, ?)", (config, _now()))
            connection.execute("COMMIT")
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise FormatError(f"{path} is not a run: dendritree did not write it")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT_VERSION:
            raise FormatError(f"{path} has format {version}; this version of dendritree reads format {FORMAT_VERSION}")
        opened.pop_all()
    return connection


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DendritreeError(f"cannot read or write {path}: {error}") from None
    except sqlite3.Error as error:
        raise FormatError(f"{path} is not a run: {error}") from None


def _mapping(text: str) -> dict[str, Any]:
    return dict(json.loads(text).items())


def _number(stored: float | None) -> float:
    """A number of SQLite as a float; NULL is NaN."""
    return math.nan if stored is None else float(stored)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"a config must hold finite JSON values: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
