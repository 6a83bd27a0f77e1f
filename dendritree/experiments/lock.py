"""One writer a folder: a lock that the operating system frees when its holder dies, however it dies."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from ..errors import DendritreeError

__all__ = ["FolderLock"]


class FolderLock:
    """Hold the exclusive right to write to a folder, until `release` or the end of the process.

    The lock is on the open file, not on its existence: a file left behind by a killed process locks nothing.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with FolderLock(folder / "trials.lock"):
    ...     FolderLock(folder / "trials.lock")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dendritree.errors.DendritreeError: a run folder takes one writer at a time: ... is in use by process ...
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError:
            raise DendritreeError("a run needs the file locks of Linux or macOS: this system has none") from None
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            who = f"process {holder}" if holder else "another process"
            raise DendritreeError(
                f"a run folder takes one writer at a time: {path.parent} is in use by {who}"
            ) from None
        except OSError:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Let others write. Releasing twice does nothing."""
        if self._descriptor >= 0:
            # The file stays: removing it would let two processes hold locks on two files of one name.
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
