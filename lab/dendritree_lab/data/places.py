"""Where data files are on this machine: the user's folder, the cache, the system's data sets."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dendritree.errors import FormatError, OptionError

from .content import DataFile, check_content, unpack

SYSTEM_FOLDER = Path("/usr/share/datasets")
"""Where Debian packages install data sets."""


@dataclass(frozen=True)
class Place:
    """A folder that may contain data sets, directly or each in a folder of its name."""

    kind: Literal["named", "cache", "system"]
    folder: Path
    origin: str
    """Why we look here, for messages."""

    def find(self, data_set: str, file: DataFile) -> Path | None:
        """The path of a file here, `.gz` or not, or None. A folder with the name of the data set is searched first.

        The cache and the system's folder contain files with the same names from several data sets, so there only that
        folder is searched.
        """
        folders = [self.folder / data_set, self.folder / data_set.replace("-", "_")]
        if self.kind == "named":
            folders.append(self.folder)
        candidates = (folder / f"{file.name}{suffix}" for folder in folders for suffix in ("", ".gz"))
        return next((path for path in candidates if _exists(path.is_file)), None)


def _exists(is_there: Callable[[], bool]) -> bool:
    """Whether a check of a path succeeds; False in a folder that we may not read."""
    try:
        return is_there()
    except OSError:
        return False


def cache_folder() -> Path:
    """The folder for downloaded files: `dendritree` under XDG_CACHE_HOME, or under ~/.cache."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if root.is_absolute():  # the XDG standard says to ignore relative paths
        return root / "dendritree"
    try:
        return Path.home() / ".cache" / "dendritree"
    except RuntimeError as error:
        raise OptionError(f"the cache must have a home: {error}; set XDG_CACHE_HOME or HOME") from None


def local_places(data_dir: str | os.PathLike[str] | None = None) -> list[Place]:
    """Where to look on this machine, in order. A folder that the user named must exist.

    >>> [place.kind for place in local_places(".")]
    ['named', 'cache', 'system']
    """
    origin = "data_dir" if data_dir is not None else "DENDRITREE_DATA"
    named = data_dir if data_dir is not None else os.environ.get("DENDRITREE_DATA") or None
    places = [Place("cache", cache_folder(), "the cache"), Place("system", SYSTEM_FOLDER, "the system's data sets")]
    if named is None:
        return places
    folder = Path(named).expanduser()
    if not os.fspath(named) or not _exists(folder.is_dir):
        raise OptionError(f"{origin} must name a folder: got {os.fspath(named)!r}")
    return [Place("named", folder, origin), *places]


def read_verified(file: DataFile, path: Path) -> bytes:
    """The content of a file, unpacked and verified; anything else raises `FormatError` with the path."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{file.name} must be readable: {error.strerror} ({path})") from None
    try:
        content = unpack(packed, "gzip" if path.suffix == ".gz" else "plain", path.name, file.size)
    except FormatError as error:
        raise FormatError(f"{error} ({path})") from None
    check_content(file, content, str(path))
    return content


@contextlib.contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Lock a folder, created if necessary, so that one of several processes downloads files and the others find them.

    Without locks (Windows, some network drives) files are still complete: two processes download the same bytes, and
    the later rename wins.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting = f"waiting for another process that downloads {folder.name}"
    with Lock(folder / ".lock", on_wait=lambda _: say(waiting)) as lock:
        if lock.held:
            for leftover in unfinished_files(folder):  # of a killed process: no other process writes here
                leftover.unlink(missing_ok=True)
        yield
