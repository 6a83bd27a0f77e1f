"""Files from which an interrupted training goes on: tensors and plain facts, in one safetensors file."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .errors import FormatError, import_extra

__all__ = ["optimizer_tensors", "put_optimizer_tensors", "read_checkpoint", "write_checkpoint"]

FORMAT = "dendritree-checkpoint"
FORMAT_VERSION = 1


def write_checkpoint(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts (JSON values; NaN and infinity too) to a file, whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> write_checkpoint(path, {"w": torch.ones(2)}, {"epoch": 3})
    >>> read_checkpoint(path)
    ({'w': tensor([1., 1.])}, {'epoch': 3})
    """
    safetensors = import_extra("safetensors.torch", extra="save")
    path = Path(path)
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    about = {"format": FORMAT, "version": str(FORMAT_VERSION), "facts": json.dumps(dict(facts))}
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        safetensors.save_file(plain, scratch, metadata=about)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_checkpoint` wrote."""
    safetensors = import_extra("safetensors", extra="save")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
    except (OSError, safetensors.SafetensorError) as error:
        raise FormatError(f"a checkpoint must be a safetensors file: {path} ({error})") from None
    if (about.get("format"), about.get("version")) != (FORMAT, str(FORMAT_VERSION)):
        raise FormatError(f"{path} must have format {FORMAT!r}, version {FORMAT_VERSION}: got {about!r:.80}")
    return tensors, json.loads(about["facts"])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory of each parameter, by the parameter's number and the memory's name."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {
        f"{number}.{name}": value
        for number, parameter in enumerate(parameters)
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def put_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer the memory that `optimizer_tensors` told."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        parameter = parameters[int(number)]
        same_place = value.shape == parameter.shape  # a step count stays on the CPU
        optimizer.state[parameter][name] = value.to(parameter.device) if same_place else value
