"""A run's SQLite file, open for one writer or for a reader, and readable messages for SQLite's errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dendritree.errors import DendritreeError, FormatError

from .schema import APPLICATION_ID, FORMAT_VERSION, SCHEMA

PATIENCE_SECONDS = 60.0
"""How long a reader waits for a commit to finish, and a commit for readers: both take well under a second."""


class Database:
    """An open file: one statement or transaction at a time, across all threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, scratch: Path | None = None) -> None:
        self.path = path
        self._connection = connection
        self._scratch = scratch
        self._turn = threading.RLock()

    @classmethod
    def for_writing(cls, path: Path) -> Database:
        """Open a file that this process alone may write to; undo what a killed writer left unfinished."""
        with plain_errors(path):
            connection = _connect(path, "rw")
            try:
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("BEGIN IMMEDIATE")  # fails immediately if the file cannot be written
                connection.execute("ROLLBACK")
                _check_format(connection, path)
            except BaseException:
                connection.close()
                raise
            return cls(path, connection)

    @classmethod
    def for_reading(cls, path: Path) -> Database:
        """Open a file without writing to its folder."""
        with plain_errors(path):
            for _ in range(20):
                connection = _connect(path, "ro")
                try:
                    _check_format(connection, path)
                    return cls(path, connection)
                except sqlite3.OperationalError as error:
                    connection.close()
                    if _name_of(error) not in ("SQLITE_READONLY_ROLLBACK", "SQLITE_CANTOPEN"):
                        raise
                except BaseException:
                    connection.close()
                    raise
                # A writer was killed during a transaction. Undoing it requires a write: do it on a copy.
                copy = _copy_at_one_moment(path)
                if copy is not None:
                    return cls(path, _connect(copy, "rw"), scratch=copy.parent)
                time.sleep(0.1)  # a new writer is undoing it right now
            raise DendritreeError(f"a run must not change while it is read: {path} changes too often")

    @contextlib.contextmanager
    def transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[sqlite3.Connection]:
        """A transaction: either everything inside is stored or, after any error, nothing; reads see one snapshot."""
        with self._turn, plain_errors(self.path):
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite rolls back itself when the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one snapshot of the file. Content that cannot be interpreted was changed by another program."""
        with self.transaction("DEFERRED") as connection:
            try:
                yield connection
            except sqlite3.Error:
                raise
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise FormatError(f"a run must be as dendritree wrote it: {self.path} ({reason:.300})") from error

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        with self._turn:
            self._connection.close()
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)


def create_database(path: Path, config: str, created: str) -> None:
    """Create the file of a new run, completely or not at all. The caller holds the folder's lock."""
    # Thanks to the lock, one temporary name is enough; a file that a killed process left there is removed here.
    fresh = path.with_name(f".{path.name}.new")
    with plain_errors(path):
        _remove(fresh)
        try:
            with contextlib.closing(_connect(fresh, "rwc")) as connection:
                connection.executescript(SCHEMA)
                connection.execute("INSERT INTO run VALUES (?, ?)", (config, created))
                connection.execute("COMMIT")
            fresh.replace(path)
        except BaseException:
            _remove(fresh)
            raise


@contextlib.contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite or the system into one-line errors. Nothing of the failed transaction is in the file."""
    try:
        yield
    except sqlite3.Error as error:
        name = _name_of(error)
        if name == "SQLITE_FULL":
            problem = f"the disk must have room for the trials: {path} cannot grow, the last trials were not stored"
        elif name == "SQLITE_READONLY_ROLLBACK":
            problem = f"a run must be reopened after its writer was killed: {path}"
        elif name == "SQLITE_CANTOPEN":
            problem = f"a run must be readable, and its folder writable to resume it: {path} ({error})"
        elif name.startswith("SQLITE_READONLY"):
            problem = f"a run folder must be writable: {path} cannot be written ({error})"
        elif name == "SQLITE_BUSY":
            problem = f"a run file must be free within {PATIENCE_SECONDS:.0f} s: {path} is locked by another program"
        elif name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise FormatError(f"a run must be a whole SQLite file: {path} is not one ({error})") from None
        else:
            problem = f"a run file must be open, readable and writable: {path} ({error})"
        raise DendritreeError(problem) from None
    except OSError as error:
        raise DendritreeError(f"a run folder must be readable and writable: {path} ({error.strerror})") from None


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{Path(path).resolve().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE_SECONDS,
        isolation_level=None,  # we begin transactions ourselves
        check_same_thread=False,  # `Database` lets one thread in at a time
    )


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise FormatError(f"a run must be an SQLite file that dendritree made: {path} was not")
    if version != FORMAT_VERSION:
        older = "an older dendritree: report it with that version, or run the command again in a new folder"
        newer = "a newer dendritree: upgrade to read it"
        raise FormatError(
            f"a run must have store format {FORMAT_VERSION}: {path} has {version}, written by "
            f"{older if version < FORMAT_VERSION else newer}"
        )


def _copy_at_one_moment(path: Path) -> Path | None:
    """A copy of the file and its journal, in a separate folder; None if they changed in the meantime."""
    journal = path.with_name(f"{path.name}-journal")
    scratch = Path(tempfile.mkdtemp(prefix="dendritree-"))
    try:
        before = _stamps(path, journal)
        for source in (path, journal):
            shutil.copyfile(source, scratch / source.name)
        if before == _stamps(path, journal):
            return scratch / path.name
    except FileNotFoundError:  # the journal is gone: another process has undone it
        pass
    except BaseException:
        shutil.rmtree(scratch)
        raise
    shutil.rmtree(scratch)
    return None


def _stamps(*paths: Path) -> list[tuple[int, int]]:
    return [(status.st_size, status.st_mtime_ns) for status in map(os.stat, paths)]


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-journal"):
        path.with_name(name).unlink(missing_ok=True)


def _name_of(error: sqlite3.Error) -> str:
    """The name of an error, such as `SQLITE_FULL`; empty for errors raised by Python itself."""
    return str(getattr(error, "sqlite_errorname", ""))
