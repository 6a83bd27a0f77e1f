"""Which data sets are on this machine, and whether their files are genuine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dendritree.errors import FormatError

from .builtin import DATASETS
from .catalog import FILE_SETS
from .content import DataFile
from .places import local_places, read_verified

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Checked:
    """One copy of a file, or its absence."""

    data_set: str
    file: str
    state: Literal["ok", "corrupt", "absent"]
    where: str
    """Its path; for a corrupt file, the error message, which includes the path."""


def is_installed(name: str) -> bool:
    """Whether the package that contains a data set is installed."""
    return importlib.util.find_spec(DATASETS[name].package) is not None


def size_of(name: str) -> int:
    """Bytes of a data set's unpacked files; 0 if it is part of a package.

    >>> size_of("adult")
    5977458
    """
    return FILE_SETS[name].size if name in FILE_SETS else 0


def whereabouts(name: str, data_dir: Folder = None) -> str:
    """The folder that contains a data set, or `not here`; files are not read."""
    if name not in FILE_SETS:
        return f"in the package {DATASETS[name].package}" if is_installed(name) else "not here"
    places, files, folder = local_places(data_dir), FILE_SETS[name].files, FILE_SETS[name].name
    found = [next(filter(None, (place.find(folder, file) for place in places)), None) for file in files]
    folders = sorted({str(path.parent) for path in found if path})
    if not folders:
        return "not here"
    missing = found.count(None)
    return ", ".join(folders) + (f" ({missing} of {len(files)} files missing)" if missing else "")


def verify(names: Iterable[str], data_dir: Folder = None) -> list[Checked]:
    """Read and check every copy of the files of some data sets; files that two of them share are read once."""
    places = local_places(data_dir)
    checked: list[Checked] = []
    for name in dict.fromkeys(FILE_SETS[name].name if name in FILE_SETS else name for name in names):
        if name not in FILE_SETS:
            state: Literal["ok", "absent"] = "ok" if is_installed(name) else "absent"
            checked.append(Checked(name, f"package {DATASETS[name].package}", state, ""))
            continue
        for file in FILE_SETS[name].files:
            paths = dict.fromkeys(path for place in places if (path := place.find(name, file)))
            checked += [_check(name, file, path) for path in paths] or [Checked(name, file.name, "absent", "")]
    return checked


def _check(data_set: str, file: DataFile, path: Path) -> Checked:
    try:
        read_verified(file, path)
    except FormatError as error:
        return Checked(data_set, file.name, "corrupt", str(error))
    return Checked(data_set, file.name, "ok", str(path))
