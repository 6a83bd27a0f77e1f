"""Files that are written completely or not at all, and a lock that is released when its holder ends."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from .errors import DendritreeError

POLL_SECONDS = 0.02
WINDOWS_LOCKS = 2**30
"""The byte of a lock file that is locked on Windows, where nobody else can read a locked byte: past the end of the
file, so that the holder's name stays readable."""
SCRATCH_NAME = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}")


def followed(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a file or folder, whether it exists or not, with all links followed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "latest").symlink_to("model-3")
    >>> followed(folder / "latest").name
    'model-3'
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a null character: opening the file will raise
        return Path(path)
    except FileNotFoundError:
        raise DendritreeError(f"the current folder must exist: it was removed, so there is no {path}") from None


def scratch_beside(path: Path) -> Path:
    """A new hidden path in the folder of a file that is to be written."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def unfinished_files(folder: Path, name: str | None = None) -> list[Path]:
    """Scratch files in a folder, for one file name or all: left by a killed process, or being written right now.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> scratch_beside(folder / "notes.txt").touch()
    >>> len(unfinished_files(folder)), len(unfinished_files(folder, "notes.txt")), unfinished_files(folder, "other.txt")
    (1, 1, [])
    """
    try:
        found = [(path, SCRATCH_NAME.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError:  # the folder does not exist yet, or may not be listed
        return []
    return [path for path, match in found if match and name in (None, match["name"])]


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], what: str = "a file") -> Iterator[Path]:
    """A path to write to, which replaces `path` at the end of the block; after an error nothing has changed.

    Args:
        path: the file to write. Its folder is created if needed; a link is followed, not replaced.
        what: what the file is, for the error if it cannot be written.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with whole_file(target) as scratch:
    ...     _ = scratch.write_text("all of it")
    ...     before = target.exists()
    >>> before, [path.name for path in target.parent.iterdir()]
    (False, ['notes.txt'])
    """
    target = followed(path)
    reject_device(target, what)
    scratch = scratch_beside(target)
    try:
        with writable(path, what):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield scratch
            scratch.replace(target)
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()


def reject_device(path: Path, what: str) -> None:
    """Reject a device in place of a file: as root, we could replace /dev/null for everybody.

    >>> reject_device(Path("nowhere"), "a file")
    """
    if path.is_char_device() or path.is_block_device():
        raise DendritreeError(f"{what} must not be a device: {path} is one")


@contextlib.contextmanager
def writable(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn an `OSError` in the block into an error that says that `what` must be writable.

    >>> import tempfile
    >>> with writable("notes", "a file"):
    ...     Path(tempfile.mkdtemp()).write_text("all of it")
    Traceback (most recent call last):
    dendritree.errors.DendritreeError: a file must be writable: notes (Is a directory)
    """
    try:
        yield
    except OSError as error:
        raise DendritreeError(f"{what} must be writable: {os.fspath(path)} ({error.strerror or error})") from None


def write_whole(path: str | os.PathLike[str], content: bytes | str, what: str = "a file") -> Path:
    """Write a file in one step, text as UTF-8; return its path.

    >>> import tempfile
    >>> write_whole(Path(tempfile.mkdtemp()) / "notes.txt", "all of it").read_bytes()
    b'all of it'
    """
    with whole_file(path, what) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


class NoLocksError(DendritreeError):
    """The system or the drive does not support file locks."""


class Lock:
    """The exclusive right to write, until `release` or the end of the process, however it ends.

    The lock is on the open file, not on its existence: a file left behind by a killed process locks nothing.

    Args:
        path: a file beside what is written, created if needed.
        on_wait: called with the holder's name before waiting. With None, raise an error instead of waiting, and also
            if the system or the drive does not support locks.
        patience: seconds to wait before raising an error.
        stays: whether to keep the lock file after the lock is released.

    Attributes:
        held: False if locks are not supported, and nothing is locked.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "trials.lock"
    >>> with Lock(place):
    ...     Lock(place)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dendritree.errors.DendritreeError: a folder takes one writer at a time: ... is in use by process ...
    """

    def __init__(
        self,
        path: Path,
        *,
        on_wait: Callable[[str], None] | None = None,
        patience: float = math.inf,
        stays: bool = True,
    ) -> None:
        self.path, self.stays = path, stays
        self._end = -math.inf if on_wait is None else time.monotonic() + patience
        self._on_wait = on_wait
        while True:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self.held = self._acquire()
                if not self.held or self._is_there():
                    break
            except BaseException:
                os.close(self._descriptor)
                raise
            os.close(self._descriptor)  # the previous holder has removed the file that we have locked
        if self.held:
            self._write_holder(f"{os.getpid()}\n")

    def _acquire(self) -> bool:
        try:
            waits = False
            while not _set_lock(self._descriptor, locked=True):
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
                who = f"process {holder}" if holder else "another process"
                if time.monotonic() >= self._end:
                    rule = "a folder takes one writer at a time"
                    raise DendritreeError(f"{rule}: {self.path.parent} is in use by {who}")
                if not waits and self._on_wait is not None:
                    self._on_wait(who)
                waits = True
                time.sleep(POLL_SECONDS)
            return True
        except (ImportError, OSError) as error:  # some network drives
            if self._on_wait is None:
                rule = "a folder with one writer needs file locks"
                raise NoLocksError(f"{rule}: {self.path.parent} ({error})") from None
            return False

    def _write_holder(self, name: str) -> None:
        with contextlib.suppress(OSError):  # a full disk, a pipe: the lock is held anyway, only without a name
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, name.encode("ascii"))

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others write. Releasing twice does nothing."""
        if self._descriptor < 0:
            return
        if self.held:
            if self.stays:
                self._write_holder("")
            else:  # while we hold the lock: afterwards the file may belong to the next holder
                self._remove()
            _set_lock(self._descriptor, locked=False)  # closing is not enough if a forked child has it open
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.stays and (
            not self.held or os.name == "nt"
        ):  # Windows does not remove a file that anybody has open
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _set_lock(descriptor: int, *, locked: bool) -> bool:
    """Lock or unlock an open file; False if another process has locked it. `ImportError` if locks are unsupported."""
    try:
        try:
            import fcntl
        except ImportError:
            import msvcrt

            os.lseek(descriptor, WINDOWS_LOCKS, os.SEEK_SET)
            how = "LK_NBLCK" if locked else "LK_UNLCK"
            msvcrt.locking(descriptor, getattr(msvcrt, how), 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if locked else fcntl.LOCK_UN)
    except (BlockingIOError, PermissionError):  # Windows raises the latter
        return False
    return True


@contextlib.contextmanager
def present(folder: Path, when_alone: Callable[[], object]) -> Iterator[None]:
    """A block in which several processes may work on a folder; a process that finds no other there cleans up first.

    Killed processes do not count. Nobody cleans up if the system or the drive does not support locks.

    Args:
        folder: the folder they work on, which must exist.
        when_alone: called by a process that is alone, while others wait to enter the block.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with present(folder, lambda: print("alone")), present(folder, lambda: print("also alone")):
    ...     pass
    alone
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # Windows
        yield
        return
    try:
        if _flocks(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            when_alone()
        _flocks(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _flocks(descriptor: int, how: int) -> bool:
    """Take a lock; False if another process has it, and on some network drives."""
    import fcntl

    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True
