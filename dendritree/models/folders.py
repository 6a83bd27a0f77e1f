"""A folder on disk that appears whole or not at all: it is written beside its place and then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ..errors import DendritreeError, FormatError

__all__ = [
    "COLUMNS_FILE",
    "CONFIG_FILE",
    "ESTIMATOR_FORMAT",
    "FORMAT_VERSION",
    "MODEL_FORMAT",
    "WEIGHTS_FILE",
    "check_format",
    "check_version",
    "folder_format",
    "model_folder",
    "read_json",
    "whole_folder",
]

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
COLUMNS_FILE = "columns.json"
"""Beside an estimator: the columns of the table that it reads; `dendritree.tabular` writes and reads it."""
MODEL_FILES = (CONFIG_FILE, WEIGHTS_FILE, COLUMNS_FILE)
MODEL_FORMAT = "dendritree-model"
FORMAT_VERSION = 1
ESTIMATOR_FORMAT = "dendritree-estimator"
"""A network inside a scikit-learn estimator; `dendritree.estimators` writes and reads it."""


def folder_format(folder: Path) -> str:
    """The format that a folder's config names: `MODEL_FORMAT` or `ESTIMATOR_FORMAT`, else `FormatError`."""
    config = read_json(folder, CONFIG_FILE)
    return check_format(config, folder / CONFIG_FILE, MODEL_FORMAT, ESTIMATOR_FORMAT)


def check_format(config: Any, path: Path, *formats: str) -> str:
    """The format that a file names, if it is one of `formats` in this version."""
    found = config.get("format") if isinstance(config, dict) else None
    if found not in formats:
        raise FormatError(f"{path} must have format {' or '.join(map(repr, formats))}: got {found!r:.60}")
    check_version(config, path)
    return str(found)


def check_version(config: dict[str, Any], path: Path) -> None:
    """Refuse a file of another version than ours."""
    version = config.get("version")
    if version != FORMAT_VERSION or not isinstance(version, int) or version is True:
        raise FormatError(f"{path} must have version {FORMAT_VERSION}: got {version!r}")


def read_json(folder: Path, file: str) -> Any:
    """What a JSON file of a model folder says."""
    path = folder / file
    if not path.is_file():
        raise FormatError(f"a model folder must hold {file}: none in {folder}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path} must be JSON: {error}") from None


@contextlib.contextmanager
def model_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder for a model's files, in the place of an earlier one; what `save` did not write is refused."""
    target = Path(folder)
    if target.exists():
        try:
            folder_format(target)
        except FormatError as error:
            raise FormatError(f"save replaces model folders only: {target} exists and is none ({error})") from None
    with whole_folder(target, replaces=MODEL_FILES) as fresh:
        yield fresh


@contextlib.contextmanager
def whole_folder(target: Path, *, replaces: Collection[str] | None = None) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `target` at the end of the block; on an error nothing changes.

    Args:
        target: the folder to be. Its parents are made.
        replaces: names of files of an earlier folder that are gone afterwards, what else lies there being kept; by
            default all of them.

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
        raise DendritreeError(f"a model's folder must be writable: {target.parent} ({error.strerror})") from None
    fresh, previous = scratch / "fresh", scratch / "previous"
    try:
        fresh.mkdir()
        yield fresh
        if target.exists():
            target.rename(previous)
        fresh.rename(target)
        if replaces is not None and previous.exists():
            for path in previous.iterdir():
                if path.name not in replaces:  # what the user keeps beside the model stays there
                    path.rename(target / path.name)
    finally:
        if not target.exists() and previous.exists():
            previous.rename(target)
        shutil.rmtree(scratch)
