"""Files and folders that appear whole or not at all, and a lock that ends with its holder."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Self

from .errors import DendritreeError

SCRATCH_NAME = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}")


def scratch_beside(path: Path) -> Path:
    """A new hidden name in the folder of a file that is to be written."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def unfinished_files(folder: Path, name: str | None = None) -> list[Path]:
    """Scratch files in a folder, of one name or all: of a process that was killed, or that is writing right now.

    >>> folder = Path(tempfile.mkdtemp())
    >>> scratch_beside(folder / "notes.txt").touch()
    >>> len(unfinished_files(folder)), len(unfinished_files(folder, "notes.txt")), unfinished_files(folder, "other.txt")
    (1, 1, [])
    """
    try:
        found = [(path, SCRATCH_NAME.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError:  # no such folder yet, or one that we may not list
        return []
    return [path for path, match in found if match and name in (None, match["name"])]


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], what: str = "a file") -> Iterator[Path]:
    """A path to write to, which takes the place of `path` at the end of the block; after an error nothing has changed.

    Args:
        path: the file to write. Its folder is made if needed.
        what: what the file is, for the error if it cannot be written.

    >>> target = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with whole_file(target) as scratch:
    ...     _ = scratch.write_text("all of it")
    ...     before = target.exists()
    >>> before, [path.name for path in target.parent.iterdir()]
    (False, ['notes.txt'])
    """
    target = Path(path)
    scratch = scratch_beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        scratch.replace(target)
    except OSError as error:
        raise DendritreeError(f"{what} must be writable: {target} ({error.strerror or error})") from None
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()


def write_whole(path: str | os.PathLike[str], content: bytes | str, what: str = "a file") -> Path:
    """Write a file in one step, text as UTF-8; return its path.

    >>> write_whole(Path(tempfile.mkdtemp()) / "notes.txt", "all of it").read_bytes()
    b'all of it'
    """
    with whole_file(path, what) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextlib.contextmanager
def whole_folder(target: Path, *, replaces: Collection[str] | None = None) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `target` at the end of the block; on an error nothing changes.

    Args:
        target: the folder to write. Its parents are made if needed.
        replaces: names of files of an earlier folder that are removed, everything else there being kept; None removes
            all of them.

    >>> place = Path(tempfile.mkdtemp()) / "model"
    >>> with whole_folder(place) as fresh:
    ...     _ = (fresh / "config.json").write_text("{}")
    ...     before = place.exists()
    >>> before, [path.name for path in place.iterdir()]
    (False, ['config.json'])
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise DendritreeError(
            f"the folder of {target.name} must be writable: {target.parent} ({error.strerror})"
        ) from None
    fresh, previous = scratch / "fresh", scratch / "previous"
    try:
        fresh.mkdir()
        yield fresh
        if target.exists():
            target.rename(previous)
        fresh.rename(target)
        if replaces is not None and previous.exists():
            for path in previous.iterdir():
                if path.name not in replaces:
                    path.rename(target / path.name)
    finally:
        if not target.exists() and previous.exists():
            previous.rename(target)
        shutil.rmtree(scratch)


class Lock:
    """The exclusive right to write, until `release` or the end of the process, however it ends.

    The lock is on the open file, not on its existence: a file left behind by a killed process locks nothing.

    Args:
        path: a file beside what is written, made if needed.
        on_wait: called with the holder's name before waiting for it. None raises instead of waiting, and also where
            the system or the drive has no locks.

    Attributes:
        held: False where there are no locks.

    >>> place = Path(tempfile.mkdtemp()) / "trials.lock"
    >>> with Lock(place):
    ...     Lock(place)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dendritree.errors.DendritreeError: a folder takes one writer at a time: ... is in use by process ...
    """

    def __init__(self, path: Path, *, on_wait: Callable[[str], None] | None = None) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self.held = self._acquire(path, on_wait)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _acquire(self, path: Path, on_wait: Callable[[str], None] | None) -> bool:
        try:
            import fcntl

            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
                who = f"process {holder}" if holder else "another process"
                if on_wait is None:
                    raise DendritreeError(
                        f"a folder takes one writer at a time: {path.parent} is in use by {who}"
                    ) from None
                on_wait(who)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except (ImportError, OSError) as error:  # Windows; some network drives
            if on_wait is None:
                raise DendritreeError(f"a folder with one writer needs file locks: {path.parent} ({error})") from None
            return False
        with contextlib.suppress(OSError):  # a full disk: the lock is held all the same, without a name
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return True

    def release(self) -> None:
        """Let others write. Releasing twice does nothing."""
        if self._descriptor < 0:
            return
        if self.held:
            import fcntl

            # The file stays: removing it would let two processes hold locks on two files of one name.
            os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing is not enough if a forked child has the file too
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
