"""Get the files of a data set from the first place that has them; if none does, list all places that were tried."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from dendritree.errors import DendritreeError, FormatError, MissingDataError, MissingExtraError
from dendritree.files import write_whole

from .catalog import FileSet
from .content import DataFile, check_content
from .places import Place, cache_folder, local_places, locked, read_verified


@dataclass(frozen=True)
class Obtained:
    """The verified content of a file, and its path; None if it was downloaded and could not be cached."""

    content: bytes
    path: Path | None


Found = dict[str, Obtained]


def obtain(file_set: FileSet, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Found:
    """Every file of a set by name, in its order, verified: from this machine, or downloaded and cached.

    Raises:
        FormatError: a file in the folder that the user named is not the genuine one.
        MissingDataError: a file was not found; the message lists each place that was tried and why it failed.
    """
    tried: list[str] = []
    found: Found = {}
    for place in local_places(data_dir):
        _look(place, file_set, found, tried)
    if download and _missing(file_set, found):
        _fetch(file_set, found, tried)
    if missing := _missing(file_set, found):
        network = "" if download else "; the network was not tried (download=False)"
        raise MissingDataError(
            f"{file_set.name} must be on this machine or within reach: {', '.join(file.name for file in missing)} not "
            f"found in {'; '.join(tried)}{network}. Put the files in a folder and name it with data_dir, --data-dir or "
            "DENDRITREE_DATA"
        )
    return {file.name: found[file.name] for file in file_set.files}


def _missing(file_set: FileSet, found: Found) -> list[DataFile]:
    return [file for file in file_set.files if file.name not in found]


def _look(place: Place, file_set: FileSet, found: Found, tried: list[str]) -> None:
    """Add the files of a place on this machine. A wrong file raises only in the folder that the user named."""
    state = "not there"
    for file in _missing(file_set, found):
        path = place.find(file_set.name, file)
        if path is None:
            continue
        try:
            found[file.name] = Obtained(read_verified(file, path), path)
        except FormatError as error:
            if place.kind == "named":
                raise
            state = "corrupt"
            _say(f"ignoring a file of {place.origin}: {error}")
    if _missing(file_set, found):
        tried.append(f"{place.origin} {place.folder} ({state})")


def _fetch(file_set: FileSet, found: Found, tried: list[str]) -> None:
    """Download the missing files, one process at a time, each from the first source that has the genuine one."""
    folder, keeps = cache_folder() / file_set.name, True
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, _say))
        except OSError as error:
            _say(f"{file_set.name} cannot be stored in {folder} ({error.strerror}) and is downloaded each time")
            keeps = False
        else:  # the process that held the lock before may have downloaded the missing files
            for file in _missing(file_set, found):
                with contextlib.suppress(FormatError):
                    found[file.name] = Obtained(read_verified(file, folder / file.name), folder / file.name)
        for source in file_set.sources:
            missing = _missing(file_set, found)
            if not missing:
                return
            try:
                for file, content in source.fetch(missing):
                    check_content(file, content, str(source))
                    found[file.name] = Obtained(content, _keep(file, content, folder) if keeps else None)
            except (MissingDataError, MissingExtraError, FormatError) as error:
                tried.append(f"{source} ({error})")


def _keep(file: DataFile, content: bytes, folder: Path) -> Path | None:
    """Cache a file and return its path, or None if it cannot be written, which is not an error."""
    try:
        return write_whole(folder / file.name, content, file.name)
    except DendritreeError as error:
        _say(f"{error}: downloaded each time")
        return None


def _say(line: str) -> None:
    sys.stderr.write(f"dendritree: {line}\n")
