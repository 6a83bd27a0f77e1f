"""Get the files of a data set from the first place that has them, and say all that was tried when none has."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DendritreeError, FormatError, MissingDataError
from ..files import write_whole
from .catalogue import FileSet
from .content import DataFile, check_content
from .places import Place, cache_folder, find, local_places, locked, read_verified

__all__ = ["Obtained", "obtain"]


@dataclass(frozen=True)
class Obtained:
    """The genuine content of a file, and where it lies; nowhere if it was fetched and could not be kept."""

    content: bytes
    path: Path | None


def obtain(
    file_set: FileSet, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> dict[str, Obtained]:
    """Every file of a set by name, in its order, verified: from this machine, or fetched and kept in the cache.

    Raises:
        FormatError: a file in the folder that the user named is not the genuine one.
        MissingDataError: a file is nowhere; the message lists each place and why it did not serve.
    """
    tried: list[str] = []
    obtained: dict[str, Obtained] = {}
    for place in local_places(data_dir):
        _look(place, file_set, obtained, tried)
    if download and _missing(file_set, obtained):
        _fetch(file_set, obtained, tried)
    if missing := _missing(file_set, obtained):
        network = "" if download else "; the network was not tried (download=False)"
        raise MissingDataError(
            f"{file_set.name} must be on this machine or within reach: {_names(missing)} not found in "
            f"{'; '.join(tried)}{network}. Put the files in a folder and name it with data_dir, --data-dir or "
            "DENDRITREE_DATA"
        )
    return {file.name: obtained[file.name] for file in file_set.files}


def _look(place: Place, file_set: FileSet, obtained: dict[str, Obtained], tried: list[str]) -> None:
    """Add the files that a place on this machine has. A wrong one is an error only where the user pointed at it."""
    wrong = 0
    for file in _missing(file_set, obtained):
        path = find(place, file_set.name, file)
        if path is None:
            continue
        try:
            obtained[file.name] = Obtained(read_verified(file, path), path)
        except FormatError as error:
            if place.kind == "named":
                raise
            wrong += 1
            _say(f"ignoring a file of {place.origin}: {error}")
    if _missing(file_set, obtained):
        tried.append(f"{place.origin} {place.folder} ({'corrupt' if wrong else 'not there'})")


def _fetch(file_set: FileSet, obtained: dict[str, Obtained], tried: list[str]) -> None:
    """Fetch what is missing, one process at a time, each file from the first source that has the genuine one."""
    folder = cache_folder() / file_set.name
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, _say))
        except OSError as error:
            _say(f"{file_set.name} cannot be kept in {folder} ({error.strerror}) and is fetched each time")
            keeper = None
        else:
            keeper = folder
            # Whoever held the lock before us may have fetched what we lack.
            for file in _missing(file_set, obtained):
                path = folder / file.name
                with contextlib.suppress(FormatError):
                    obtained[file.name] = Obtained(read_verified(file, path), path)
        for source in file_set.sources:
            missing = _missing(file_set, obtained)
            if not missing:
                return
            try:
                for file, content in source.fetch(missing):
                    check_content(file, content, str(source))
                    obtained[file.name] = Obtained(content, _kept(file, content, keeper))
            except (MissingDataError, FormatError) as error:
                tried.append(f"{source} ({error})")


def _kept(file: DataFile, content: bytes, folder: Path | None) -> Path | None:
    """The path of the file in the cache, or None where it cannot be written: the content is good all the same."""
    if folder is None:
        return None
    try:
        return write_whole(folder / file.name, content, file.name)
    except DendritreeError as error:
        _say(f"{error}: fetched each time")
        return None


def _missing(file_set: FileSet, obtained: dict[str, Obtained]) -> list[DataFile]:
    return [file for file in file_set.files if file.name not in obtained]


def _names(files: Sequence[DataFile]) -> str:
    return ", ".join(file.name for file in files)


def _say(line: str) -> None:
    sys.stderr.write(f"dendritree: {line}\n")
