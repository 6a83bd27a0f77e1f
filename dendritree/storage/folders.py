"""The folder of a model: its files, its format and version."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..files import whole_folder

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
]

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
COLUMNS_FILE = "columns.json"
"""Beside an estimator: the columns of the table that it reads; `dendritree.sklearn.tables` writes and reads it."""
MODEL_FILES = (CONFIG_FILE, WEIGHTS_FILE, COLUMNS_FILE)
MODEL_FORMAT = "dendritree-model"
FORMAT_VERSION = 1
ESTIMATOR_FORMAT = "dendritree-estimator"
"""A network inside a scikit-learn estimator; `dendritree.sklearn` writes and reads it."""


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
