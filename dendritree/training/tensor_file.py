"""Named tensors and plain facts in one safetensors file with a checksum, so that a damaged file is never used."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import FormatError, OptionError, import_extra
from ..files import followed, scratch_beside, write_whole

FORMAT = "dendritree-checkpoint"
FORMAT_VERSION = 1


def write_checkpoint(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts (JSON values, also NaN and infinity) to a file, completely or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> write_checkpoint(path, {"w": torch.ones(2)}, {"epoch": 3})
    >>> read_checkpoint(path)
    ({'w': tensor([1., 1.])}, {'epoch': 3})
    """
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(dict(facts))
    about = {"format": FORMAT, "version": str(FORMAT_VERSION), "facts": text, "checksum": _checksum(plain, text)}
    # Not `save_file`: only the owner can read its files, and if killed it leaves temporary files with other names.
    content = import_extra("safetensors.torch", extra="save").save(plain, metadata=about)
    write_whole(path, content, "a checkpoint")


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts that `write_checkpoint` wrote."""
    safetensors = import_extra("safetensors", extra="save")
    if not Path(path).is_file():  # opening a pipe would block
        raise FormatError(f"a checkpoint must be a safetensors file: {path} (not a file)")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  not a mapping
    except (OSError, safetensors.SafetensorError) as error:
        raise FormatError(f"a checkpoint must be a safetensors file: {path} ({error})") from None
    if (about.get("format"), about.get("version")) != (FORMAT, str(FORMAT_VERSION)):
        raise FormatError(f"{path} must have format {FORMAT!r}, version {FORMAT_VERSION}: got {about!r:.80}")
    if about.get("checksum") != _checksum(tensors, about.get("facts", "")):
        raise FormatError(f"a checkpoint must be unchanged since it was written: the checksum of {path} differs")
    return tensors, json.loads(about["facts"])


def kind_of(tensor: Tensor) -> str:
    """The type and shape of a tensor.

    >>> kind_of(torch.ones(2, 3))
    'float32 (2, 3)'
    """
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def fingerprint(tensor: Tensor) -> str:
    """The type and shape of a tensor, and a hash of its values.

    >>> fingerprint(torch.tensor([1, 2])) == fingerprint(torch.tensor([1, 3]))
    False
    """
    values = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)  # bytes: numpy has no bfloat16
    return f"{kind_of(tensor)} {hashlib.blake2b(values.numpy().data, digest_size=8).hexdigest()}"


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    lines = [text, *(f"{name} {fingerprint(tensors[name])}" for name in sorted(tensors))]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def check_writable(path: Path) -> None:
    """Raise if a path cannot be written; tested next to the path, or in the nearest parent folder that exists."""
    try:
        target = followed(path)
        folder = next(parent for parent in target.parents if parent.exists())
        trial = scratch_beside(folder / target.name)
        trial.touch()
        trial.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"checkpoint must be a file that can be written: got {str(path)!r} ({reason})") from None
