"""The store of a run: one SQLite file, one writer, any number of readers; a trial is in it whole or not at all.

    run/
      trials.sqlite   the tables of schema.py
      trials.lock     held by the process that writes
      trials.sqlite-journal   only while something is being written

The file uses SQLite's rollback journal, not its write-ahead log: what is committed is in the one file, and it can be
read from a read-only folder or a network drive. Whatever a killed writer had not committed is undone by the next one.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import DendritreeError, FormatError, OptionError
from ...files import Lock
from .database import Database, create_database
from .provenance import Environment, as_columns, current_environment, differences
from .records import Row, TrialRecord
from .schema import KEY_COLUMNS, TrialKey, check_record, insert_trial, read_records

__all__ = ["STORE_FILE", "RunStore", "TrialKey"]

STORE_FILE = "trials.sqlite"
LOCK_FILE = "trials.lock"
SHOWN_DIFFERENCES = 12


class RunStore:
    """The trials of one run. Made by `create_or_open` and `open_for_reading`; a context manager that closes itself.

    >>> import tempfile
    >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> trial = TrialRecord("paper", row, 0, 1, "mnist", 0.001, 11_395, 0.1, curves)
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> with RunStore.create_or_open(folder, {"trials": 10}) as store:
    ...     store.add([trial])
    1
    >>> with RunStore.open_for_reading(folder) as store:
    ...     store.records() == [trial]
    True
    """

    def __init__(self, folder: Path, database: Database, lock: Lock | None, environment: int) -> None:
        self.folder = folder
        """The run folder."""
        self._database = database
        self._lock = lock
        self._environment = environment

    @classmethod
    def create_or_open(cls, folder: str | os.PathLike[str], config: Mapping[str, Any]) -> RunStore:
        """Open the run in `folder` for writing; make it, and the folder, if there is none.

        A run goes on only with the config, the store format and the versions of dendritree and torch that it was
        begun with; anything else is refused with the difference, and nothing is changed.

        Args:
            folder: the run folder.
            config: everything that decides the results, as JSON values.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> RunStore.create_or_open(folder, {"trials": 10, "fit": {"lr": 0.05}}).close()
        >>> RunStore.create_or_open(folder, {"trials": 3, "fit": {"lr": 0.05}})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dendritree.errors.FormatError: a run goes on as it was begun: ... differs in trials: 10 -> 3
        """
        text, folder, environment = _canonical_json(config), Path(folder), current_environment()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = Lock(folder / LOCK_FILE)
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
        """Open the run in `folder` to look at it: nothing in the folder is written, even while a writer is at work.

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

    def add(self, records: Sequence[TrialRecord], *, skip_present: bool = False) -> int:
        """Store trials with their histories and weights, all of them or none; return how many were stored.

        Args:
            records: the trials.
            skip_present: leave out trials that are there already, instead of refusing them all.
        """
        if self._lock is None:
            raise OptionError(f"a store opened for reading takes no trials: {self.folder}")
        for record in records:
            check_record(record)
        stored, created = 0, _now()
        with self._database.transaction("IMMEDIATE") as connection:
            for record in records:
                key = TrialKey.of(record)
                if _is_present(connection, key):
                    if skip_present:
                        continue
                    raise OptionError(f"a trial is stored once: {key} is in {self.folder} already")
                insert_trial(connection, record, environment=self._environment, created=created)
                stored += 1
        return stored

    def set_reference_seconds(self, seconds: Mapping[Row, float]) -> None:
        """Keep what a trial of these rows would have taken with the paper's masked matrices; the last time counts."""
        if self._lock is None:
            raise OptionError(f"a store opened for reading takes no times: {self.folder}")
        with self._database.transaction("IMMEDIATE") as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO reference VALUES (?, ?, ?, ?, ?, ?)",
                [(r.table, r.task, r.network, r.size, float(r.dropout), float(s)) for r, s in seconds.items()],
            )

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def reference_seconds(self) -> dict[Row, float]:
        """What `set_reference_seconds` kept."""
        columns = '"table", task, network, size, dropout, seconds'
        rows = self._database.select(f"SELECT {columns} FROM reference ORDER BY {columns}")
        return {Row(*row[:5]): row[5] for row in rows}

    def __len__(self) -> int:
        (count,) = self._database.select("SELECT count(*) FROM trial")[0]
        return int(count)

    @property
    def config(self) -> dict[str, Any]:
        """The config the run was begun with."""
        return dict(json.loads(self._database.select("SELECT config FROM run")[0][0]))

    @property
    def created(self) -> str:
        """When the run was begun, in UTC."""
        return str(self._database.select("SELECT created FROM run")[0][0])

    @property
    def environments(self) -> list[Environment]:
        """Versions and machines that trials of this run came from; the first began it."""
        columns = list(Environment.__dataclass_fields__)
        names = ", ".join(f'"{column}"' for column in columns)
        rows = self._database.select(f"SELECT {names} FROM environment ORDER BY id")
        return [Environment(**dict(zip(columns, row, strict=True))) for row in rows]

    def present(self) -> set[TrialKey]:
        """The keys (protocol, table, network, size, dropout, index) of all trials stored."""
        return {TrialKey(*row) for row in self._database.select(f"SELECT {KEY_COLUMNS} FROM trial")}

    def records(
        self, protocol: str | None = None, table: str | None = None, *, with_weights: bool = False
    ) -> list[TrialRecord]:
        """The trials with their histories, in the order of their keys.

        Args:
            protocol: only of this protocol.
            table: only of this table.
            with_weights: also read the weights; without, `weights` is None in every record.
        """
        where, values = '(?1 IS NULL OR protocol = ?1) AND (?2 IS NULL OR "table" = ?2)', (protocol, table)
        with self._database.transaction("DEFERRED") as connection:  # one moment for trials and histories
            return read_records(connection, where, values, with_weights=with_weights)

    def weights(self, row: Row, protocol: str | None = None) -> bytes:
        """The best epoch's weights of the row's trial 0, as safetensors.

        Args:
            row: the row.
            protocol: needed where the row was run under more than one.
        """
        found = self._database.select(
            """SELECT protocol, safetensors FROM trial JOIN weights ON weights.trial = trial.id
            WHERE "table" = ? AND network = ? AND size = ? AND dropout = ? AND iteration = 0
            AND (?5 IS NULL OR protocol = ?5) ORDER BY protocol""",
            (row.table, row.network, row.size, float(row.dropout), protocol),
        )
        if len(found) != 1:
            kept = f"kept under {' and '.join(name for name, _ in found)}" if found else "none kept"
            raise OptionError(f"weights must be kept of exactly one trial of a row: {row.table} {row.model} {kept}")
        return bytes(found[0][1])

    def export(self, folder: str | os.PathLike[str], format: str = "csv") -> list[Path]:  # noqa: A002
        """Write all trials to `trials` and all epochs to `history` in `folder`, as CSV or Parquet; return the paths.

        Args:
            folder: where to, made if needed.
            format: `csv`, or `parquet`, which needs pyarrow.
        """
        from .export import export_tables

        return export_tables(self._database, Path(folder), format)

    def export_weights(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the kept model of every row to a folder of its own, as `dendritree.load` reads it; return the paths."""
        from .export import export_models

        return export_models(self.records(with_weights=True), Path(folder))

    def close(self) -> None:
        """Close the file and let others write. Closing twice does nothing."""
        self._database.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_same_run(database: Database, config: dict[str, Any], environment: Environment) -> None:
    """Refuse to go on with a run that another config or another version began."""
    (begun,) = database.select("SELECT config FROM run")
    lines = differences(json.loads(begun[0]), config)
    for versions in database.select("SELECT dendritree, torch FROM environment ORDER BY id LIMIT 1"):
        before = dict(zip(("dendritree", "torch"), versions, strict=True))
        lines += differences(before, {name: getattr(environment, name) for name in before}, "versions")
    if lines:
        more = [f"and {len(lines) - SHOWN_DIFFERENCES} more"] if len(lines) > SHOWN_DIFFERENCES else []
        shown = ", ".join(lines[:SHOWN_DIFFERENCES] + more)
        raise FormatError(f"a run goes on as it was begun: {database.path.parent} differs in {shown}")


def _remember(database: Database, environment: Environment) -> int:
    """The id of the environment among the run's own, where it is written once."""
    columns = as_columns(environment)
    names = ", ".join(f'"{name}"' for name in columns)
    same = " AND ".join(f'"{name}" IS ?' for name in columns)
    with database.transaction("IMMEDIATE") as connection:
        found = connection.execute(f"SELECT id FROM environment WHERE {same}", tuple(columns.values())).fetchone()
        if found:
            return int(found[0])
        marks = ", ".join("?" * len(columns))
        cursor = connection.execute(f"INSERT INTO environment ({names}) VALUES ({marks})", tuple(columns.values()))
        return int(cursor.lastrowid or 0)


def _is_present(connection: sqlite3.Connection, key: TrialKey) -> bool:
    marks = ", ".join("?" * len(key))
    return bool(connection.execute(f"SELECT 1 FROM trial WHERE ({KEY_COLUMNS}) = ({marks})", key).fetchone())


def _canonical_json(config: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(config), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"config must be finite JSON values: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
