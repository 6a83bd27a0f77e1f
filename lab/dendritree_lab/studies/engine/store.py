"""The store of a run: one SQLite file, one writer, any number of readers; a trial is stored completely or not at all.

    run/
      trials.sqlite   the tables of schema.py
      trials.lock     held by the process that writes
      trials.sqlite-journal   only while something is being written

The file uses SQLite's rollback journal, not its write-ahead log: everything committed is in a single file, which can be
read from a read-only folder or a network drive. What a killed writer had not committed is undone by the next writer.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from filelock import FileLock

from dendritree.errors import DendritreeError, FormatError, OptionError

from .database import Database, create_database
from .provenance import Environment, current_environment, differences
from .schema import check_trial, describe, insert_trial, read_config, read_trials
from .trial import Trial, Value

STORE_FILE = "trials.sqlite"
LOCK_FILE = "trials.lock"
SHOWN_DIFFERENCES = 12

Kept = TypeVar("Kept")


class RunStore:
    """The trials of one run. Created by `create_or_open` and `open_for_reading`; closed when used as a context manager.

    >>> import tempfile
    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> trial = Trial("fair", {"task": "mnist", "trial": 0}, 1, {"network": "mlp"}, 11_395, 0.1, curves)
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> with RunStore.create_or_open(folder, {"trials": 10}) as store:
    ...     store.add([trial])
    >>> with RunStore.open_for_reading(folder) as store:
    ...     store.trials() == [trial]
    True
    """

    def __init__(self, folder: Path, database: Database, lock: FileLock | None, environment: int) -> None:
        self.folder = folder
        """The run folder."""
        self._database = database
        self._lock = lock
        self._environment = environment

    @classmethod
    def create_or_open(cls, folder: str | os.PathLike[str], config: Mapping[str, Any]) -> RunStore:
        """Open the run in `folder` for writing; create it, and the folder, if necessary.

        A run resumes only with the config and the versions of dendritree and torch that it was started with; otherwise
        an error states the differences, and nothing is changed.

        Args:
            folder: the run folder.
            config: everything that determines the results, as JSON values.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> RunStore.create_or_open(folder, {"trials": 10, "fit": {"lr": 0.05}}).close()
        >>> RunStore.create_or_open(folder, {"trials": 3, "fit": {"lr": 0.05}})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dendritree.errors.FormatError: a run resumes with the settings it was started with: ... in trials: 10 -> 3
        """
        text, folder, environment = _canonical_json(config), Path(folder), current_environment()
        try:
            Path(folder).resolve().mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / LOCK_FILE)
            lock.acquire(blocking=False)
        except OSError as error:
            raise DendritreeError(f"a run folder must be writable: {folder} ({error.strerror})") from None
        path = folder / STORE_FILE
        try:
            if not path.exists():
                create_database(path, text, _now())
            database = Database.for_writing(path)
        except BaseException:
            lock.release()
            raise
        try:
            _check_same_run(database, json.loads(text), environment)
            return cls(folder, database, lock, _remember(database, environment))
        except BaseException:
            database.close()
            lock.release()
            raise

    @classmethod
    def open_for_reading(cls, folder: str | os.PathLike[str]) -> RunStore:
        """Open the run in `folder` read-only: nothing in the folder is written, even while a writer is active.

        >>> RunStore.open_for_reading("no/such/run")
        Traceback (most recent call last):
        dendritree.errors.FormatError: a run folder must hold trials.sqlite: none in no/such/run
        """
        folder = Path(folder)
        path = folder / STORE_FILE
        if not path.is_file():
            raise FormatError(f"a run folder must hold {STORE_FILE}: none in {folder}")
        return cls(folder, Database.for_reading(path), None, environment=0)

    # ------------------------------------------------------------------------------------------------------- writing

    def add(self, trials: Sequence[Trial]) -> None:
        """Store trials with their curves and weights, all of them or none; a trial that is already stored raises."""
        for trial in trials:
            check_trial(trial)
        created = _now()
        with self._writing() as connection:
            for trial in trials:
                try:
                    insert_trial(connection, trial, environment=self._environment, created=created)
                except sqlite3.IntegrityError:
                    known = f"{describe(trial)} is in {self.folder} already"
                    raise OptionError(f"a trial is stored once: {known}") from None

    def set_fact(self, name: str, value: Any) -> None:
        """Store something that a study measured besides its trials, as JSON values; replaces an earlier value."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, _canonical_json(value)))

    def _writing(self) -> Any:
        if self._lock is None:
            raise OptionError(f"a store must be open for writing to store anything: {self.folder} is open for reading")
        return self._database.transaction("IMMEDIATE")

    # ------------------------------------------------------------------------------------------------------- reading

    def read_fact(self, name: str, read: Callable[[Any], Kept], default: Any = None) -> Kept:
        """Apply `read` to a value stored by `set_fact`; a value that it cannot read raises `FormatError`."""
        with self._database.reading() as connection:
            found = connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
            return read(json.loads(found[0]) if found else default)

    def __len__(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM trial").fetchone()[0])

    @property
    def config(self) -> dict[str, Any]:
        """The config the run was started with."""
        with self._database.reading() as connection:
            return read_config(connection)

    @property
    def created(self) -> str:
        """When the run was started, in UTC."""
        with self._database.reading() as connection:
            return str(connection.execute("SELECT created FROM run").fetchone()[0])

    @property
    def environments(self) -> list[Environment]:
        """Versions and machines that the trials of this run came from; the first one started it."""
        columns = list(Environment.__dataclass_fields__)
        names = ", ".join(f'"{column}"' for column in columns)
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {names} FROM environment ORDER BY id")
            return [Environment(**dict(zip(columns, row, strict=True))) for row in rows]

    def present(self) -> set[tuple[str, str]]:
        """Study and key, as `key_text` writes it, of all stored trials."""
        with self._database.reading() as connection:
            return set(connection.execute("SELECT study, key FROM trial"))

    def trials(self, *, with_weights: bool = False, **wanted: Value) -> list[Trial]:
        """The trials with their curves, in the order of their keys.

        Args:
            with_weights: also read the weights; otherwise `weights` is None in every trial.
            wanted: values that the key must have, such as `task="mnist"`.
        """
        return self.read_trials(lambda trial: trial, with_weights=with_weights, **wanted)

    def read_trials(self, read: Callable[[Trial], Kept], *, with_weights: bool = False, **wanted: Value) -> list[Kept]:
        """Apply `read` to each of the `trials`; a trial that it cannot read raises `FormatError`."""
        with self._database.reading() as connection:  # one snapshot for trials and curves
            return [read(trial) for trial in read_trials(connection, wanted, with_weights=with_weights)]

    def export(self, folder: str | os.PathLike[str], format: str = "csv") -> list[Path]:  # noqa: A002
        """Write all trials to `trials` and all epochs to `history` in `folder`, as CSV or Parquet; return the paths.

        Args:
            folder: where to write; created if necessary.
            format: `csv`, or `parquet`, which needs pyarrow.
        """
        from .export_files import export_tables

        return export_tables(self._database, Path(folder), format)

    def close(self) -> None:
        """Close the file and let others write. Closing twice does nothing."""
        self._database.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_same_run(database: Database, config: dict[str, Any], environment: Environment) -> None:
    """Reject a run that was started with another config or another version."""
    with database.reading() as connection:
        lines = differences(read_config(connection), config)
        first = connection.execute("SELECT dendritree, torch FROM environment ORDER BY id LIMIT 1").fetchall()
    for versions in first:
        before = dict(zip(("dendritree", "torch"), versions, strict=True))
        lines += differences(before, {name: getattr(environment, name) for name in before}, "versions")
    if lines:
        more = [f"and {len(lines) - SHOWN_DIFFERENCES} more"] if len(lines) > SHOWN_DIFFERENCES else []
        shown = ", ".join(lines[:SHOWN_DIFFERENCES] + more)
        raise FormatError(
            f"a run resumes with the settings it was started with: {database.path.parent} differs in {shown}"
        )


def _remember(database: Database, environment: Environment) -> int:
    """The id of the environment in the run's table, to which it is added once."""
    columns = asdict(environment) | {"machine": environment.machine}
    names = ", ".join(f'"{name}"' for name in columns)
    same = " AND ".join(f'"{name}" IS ?' for name in columns)
    with database.transaction("IMMEDIATE") as connection:
        found = connection.execute(f"SELECT id FROM environment WHERE {same}", tuple(columns.values())).fetchone()
        if found:
            return int(found[0])
        marks = ", ".join("?" * len(columns))
        cursor = connection.execute(f"INSERT INTO environment ({names}) VALUES ({marks})", tuple(columns.values()))
        return int(cursor.lastrowid or 0)


def _canonical_json(config: Any) -> str:
    try:
        return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"config must be finite JSON values: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
