"""Find the files of a data set on this machine, or download them to the cache; each is verified before it is used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from dendritree.errors import DendritreeError, FormatError, MissingDataError, OptionError
from dendritree.files import write_whole

from .catalog import FILE_SETS, FileSet
from .sources import DataFile, unpack

Folder = str | os.PathLike[str] | None
SYSTEM_FOLDER = Path("/usr/share/datasets")
"""Where Debian packages install data sets."""


@dataclass(frozen=True)
class DataFolder:
    """A folder that may contain data sets, each in a folder of its name."""

    path: Path
    origin: str
    """Why it is searched, for messages."""
    named: bool = False
    """Whether the user named it; such a folder may contain the files of a data set directly; wrong ones raise."""

    def find(self, data_set: str, file: DataFile) -> Path | None:
        """The path of a file here, `.gz` or not; None if there is none."""
        folders = [self.path / data_set, self.path / data_set.replace("-", "_"), *([self.path] if self.named else [])]
        candidates = (folder / f"{file.name}{suffix}" for folder in folders for suffix in ("", ".gz"))
        return next((path for path in candidates if path.is_file()), None)


def cache_folder() -> Path:
    """The folder for downloaded files: `dendritree` under XDG_CACHE_HOME, or under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dendritree"


def data_folders(data_dir: Folder = None) -> list[DataFolder]:
    """The folders to search on this machine, in order.

    >>> [folder.origin for folder in data_folders(".")]
    ['data_dir', 'the cache', "the system's data sets"]
    """
    folders = [DataFolder(cache_folder(), "the cache"), DataFolder(SYSTEM_FOLDER, "the system's data sets")]
    origin = "DENDRITREE_DATA" if data_dir is None else "data_dir"
    named = os.environ.get("DENDRITREE_DATA") or None if data_dir is None else data_dir
    if named is None:
        return folders
    path = Path(named).expanduser()
    if not os.fspath(named) or not path.is_dir():
        raise OptionError(f"{origin} must be an existing folder: got {os.fspath(named)!r}")
    return [DataFolder(path, origin, named=True), *folders]


def read_verified(file: DataFile, path: Path) -> bytes:
    """The content of a file, unpacked if it ends in .gz; raises `FormatError` if its digest is wrong."""
    return file.check(unpack(path, "gzip" if path.suffix == ".gz" else "plain"), path)


def obtain(file_set: FileSet, *, data_dir: Folder = None, download: bool = True) -> dict[str, bytes]:
    """The content of every file of a set by name: from this machine, or downloaded and cached.

    Raises:
        FormatError: a file in the folder that the user named has the wrong digest.
        MissingDataError: a file was not found; the message lists what was tried.
    """
    contents: dict[str, bytes] = {}
    tried: list[str] = []
    for folder in data_folders(data_dir):
        tried += _search(folder, file_set, contents)
    if download and _missing(file_set, contents):
        tried += _download(file_set, contents)
    if missing := _missing(file_set, contents):
        network = "" if download else "; nothing was downloaded (download=False)"
        raise MissingDataError(
            f"could not find {', '.join(file.name for file in missing)} of {file_set.name}: tried {'; '.join(tried)}"
            f"{network}. Run `dendritree data get {file_set.name}` on a machine with network access, copy its cache "
            "folder here, and pass it as data_dir, --data-dir or DENDRITREE_DATA"
        )
    return {file.name: contents[file.name] for file in file_set.files}


def _missing(file_set: FileSet, contents: dict[str, bytes]) -> list[DataFile]:
    return [file for file in file_set.files if file.name not in contents]


def _search(folder: DataFolder, file_set: FileSet, contents: dict[str, bytes]) -> list[str]:
    """Add the files in a folder; returns what to report if some are missing."""
    state = "not found"
    for file in _missing(file_set, contents):
        path = folder.find(file_set.name, file)
        try:
            if path is not None:
                contents[file.name] = read_verified(file, path)
        except FormatError as error:
            if folder.named:
                raise
            state = str(error)
    return [f"{folder.origin} {folder.path} ({state})"] if _missing(file_set, contents) else []


def _download(file_set: FileSet, contents: dict[str, bytes]) -> list[str]:
    """Download the missing files, each from the first source that has it; returns what failed."""
    folder = cache_folder() / file_set.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DendritreeError(f"could not create the cache {folder}: {error.strerror}") from None
    failures = []
    with FileLock(folder / ".lock"), tempfile.TemporaryDirectory(prefix="dendritree-") as scratch:
        # The process that held the lock before may have downloaded the files.
        _search(DataFolder(cache_folder(), "the cache"), file_set, contents)
        for source in file_set.sources:
            missing = _missing(file_set, contents)
            if not missing:
                break
            try:
                for file, content in source.fetch(missing, Path(scratch)):
                    write_whole(folder / file.name, file.check(content, source), file.name)
                    contents[file.name] = content
            except (MissingDataError, FormatError) as error:
                failures.append(f"{source} ({error})")
    return failures


# -------------------------------------------------------------------------------------------------- what is here


def _copies(file_set: FileSet, data_dir: Folder) -> dict[DataFile, list[Path]]:
    """The paths of each file on this machine; the first one is used."""
    folders = data_folders(data_dir)
    paths = {file: [folder.find(file_set.name, file) for folder in folders] for file in file_set.files}
    return {file: [*dict.fromkeys(filter(None, copies))] for file, copies in paths.items()}


def whereabouts(name: str, data_dir: Folder = None) -> str:
    """The folder that contains a data set, or `not on this machine`; files are not read."""
    if name not in FILE_SETS:
        return "in scikit-learn"
    copies = _copies(FILE_SETS[name], data_dir)
    folders = sorted({str(paths[0].parent) for paths in copies.values() if paths})
    missing = sum(not paths for paths in copies.values())
    partly = f" ({missing} of {len(copies)} files missing)" if missing else ""
    return ", ".join(folders) + partly if folders else "not on this machine"


def verify(names: Iterable[str], data_dir: Folder = None) -> list[tuple[str, str, str, str]]:
    """Read every copy of the files of some data sets; files that several of them share are read once.

    Returns:
        For each copy, the data set, the file, `ok`, `corrupt` or `absent`, and the path or the error.
    """
    rows = []
    for file_set in dict.fromkeys(FILE_SETS[name] for name in names if name in FILE_SETS):
        for file, paths in _copies(file_set, data_dir).items():
            rows += [] if paths else [(file_set.name, file.name, "absent", "")]
            for path in paths:
                try:
                    read_verified(file, path)
                    rows.append((file_set.name, file.name, "ok", str(path)))
                except FormatError as error:
                    rows.append((file_set.name, file.name, "corrupt", str(error)))
    return rows
