"""The folder of a model: its files, its format, and the module that rebuilds what it describes.

    model/
      config.json                    format, version, and everything needed to rebuild the object besides its tensors
      weights-9f86d081.safetensors   its tensors: the state dict of a network, trees and wiring included

The config names its weights by their digest. A save writes the new weights beside the old ones, then replaces the
config in one step: a killed save leaves the old model or the new one.

An object is described by a config (plain JSON values) and named tensors. A description may hold another one: that of an
estimator holds its network's. Other packages add formats by entry points of the group `dendritree.formats`, as
dendritree-lab does for table models: the name of a format, and a module with `describe` and `rebuild`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from ..errors import FormatError, MissingExtraError, OptionError
from ..files import write_whole

CONFIG_FILE = "config.json"
WEIGHTS_DIGEST = "weights_sha256"
"""Key in the config: the digest of its weights, which also names their file."""
VERSION = 1

MODEL_FORMAT, ESTIMATOR_FORMAT = "dendritree-model", "dendritree-estimator"
FORMATS = {
    MODEL_FORMAT: "dendritree.storage.network_description",
    ESTIMATOR_FORMAT: "dendritree.sklearn.estimator_description",
}
"""Formats of this library, and the modules that `describe` and `rebuild` their objects, imported when needed."""
ELSEWHERE = {"dendritree-table": "dendritree-lab"}
"""Formats of other packages, for the error if they are not installed."""

Description = tuple[dict[str, Any], dict[str, Tensor]]


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a network, or a fitted `DendriticClassifier` or `DendriticRegressor`, to a folder.

    `load(folder)` rebuilds models and layers of this library, and any `nn.Sequential` of these and of layers of
    `torch.nn`. For your own model that contains layers of this library, and for the result of `convert`, the folder
    holds the weights and those layers: `load(folder, into=model)` fills them into another instance.

    The folder may be new, empty, or a model folder, in which the model is replaced and other files are left alone; any
    other existing path raises `FormatError`. Even if the process is killed, `load` reads the old model or the new one.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4)
    >>> folder = Path(tempfile.mkdtemp()) / "net"
    >>> save(net, folder)
    >>> sorted(path.suffix for path in folder.iterdir())
    ['.json', '.safetensors']
    """
    target = Path(folder)
    check_target(target)
    config, tensors = describe(model)
    plain = {key: value.detach().cpu().clone(memory_format=torch.contiguous_format) for key, value in tensors.items()}
    content = safetensors.torch.save(plain)  # not `save_file`, whose files only the owner can read
    config |= {WEIGHTS_DIGEST: hashlib.sha256(content).hexdigest()}
    try:
        text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        raise OptionError(f"the options of a model must be finite to be saved: got {config!r:.400}") from None
    weights = _weights_file(config)
    write_whole(target / weights, content, "a model")
    write_whole(target / CONFIG_FILE, text, "a model")
    for path in target.glob(_weights_file({WEIGHTS_DIGEST: "?" * 8})):
        if path.name != weights:
            path.unlink(missing_ok=True)


def load(
    folder: str | os.PathLike[str], *, into: nn.Module | None = None, device: torch.device | str | None = None
) -> Any:
    """Read what `save` wrote: a network in evaluation mode, or an estimator.

    An estimator predicts as before, and `partial_fit` continues as if it had never been saved. Torch's random state is
    not changed.

    Args:
        folder: a folder that `save` wrote.
        into: a network to fill in place and return, for a model of your own class, which no file can build. Layers of
            this library are restored as they were saved: the original of a conversion is converted, a pruned layer is
            pruned. Everything else must exist, with the same names and shapes. After an error the network is unchanged.
        device: the device to load to; the CPU by default.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4).eval()
    >>> save(net, folder := Path(tempfile.mkdtemp()) / "net")
    >>> bool((load(folder)(torch.ones(2, 16)) == net(torch.ones(2, 16))).all())
    True
    """
    if into is not None and not isinstance(into, nn.Module):
        raise OptionError(f"into must be an nn.Module: got {type(into).__name__}")
    return read_folder(folder, device=device, into=into)


def check_target(folder: Path) -> None:
    """Reject a path that `save` must not write to: it is neither new, nor empty, nor a model folder."""
    if not folder.exists() or (folder.is_dir() and not any(path for path in folder.iterdir() if not _is_left(path))):
        return
    try:
        _read_config(folder)
    except FormatError as error:
        raise FormatError(f"save only replaces model folders: {folder} exists and is not one ({error})") from None


def _is_left(path: Path) -> bool:
    """Whether a file is one that a killed save may have left in a new folder."""
    return path.name.startswith(".") or path.match(_weights_file({WEIGHTS_DIGEST: "?" * 8}))


def read_folder(
    folder: str | os.PathLike[str], *formats: str, device: torch.device | str | None = None, into: Any = None
) -> Any:
    """The object in a folder, of one of these formats or of any; or the network `into`, filled from the folder."""
    _check_device(device)
    if not Path(folder).exists():
        raise FormatError(f"the model folder {os.fspath(folder)} does not exist")
    try:
        config = _read_config(folder, *formats)
        if not (Path(folder) / _weights_file(config)).exists():  # another process may just have replaced the model
            config = _read_config(folder, *formats)
        name = _weights_file(config)
        content = _read_bytes(Path(folder) / name)
        if hashlib.sha256(content).hexdigest() != config[WEIGHTS_DIGEST]:
            raise FormatError(f"{name} is damaged: its SHA-256 is not the one in {CONFIG_FILE}")
        return rebuild(config, safetensors.torch.load(content), device=device, into=into)
    except (FormatError, safetensors.SafetensorError) as error:
        raise FormatError(f"{error} (in {os.fspath(folder)})") from error


# ---------------------------------------------------------------------------------------------------- descriptions


def describe(thing: Any) -> Description:
    """The config and the tensors from which `rebuild` makes the object."""
    kind = getattr(thing, "folder_format", ESTIMATOR_FORMAT if hasattr(thing, "get_params") else MODEL_FORMAT)
    config, tensors = _module(kind).describe(thing)
    return {"format": kind, "version": VERSION, **config}, tensors


def rebuild(
    config: Any,
    tensors: Mapping[str, Tensor],
    *formats: str,
    device: torch.device | str | None = None,
    into: Any = None,
) -> Any:
    """The object of a description, of one of these formats or of any. Torch's random state is left unchanged."""
    kind = check_format(config, *formats)
    if into is not None and kind != MODEL_FORMAT:
        raise FormatError(f"into is for networks: {CONFIG_FILE} describes a {kind}, which needs none")
    try:
        with torch.random.fork_rng(devices=[]):
            module = _module(kind)
            if into is not None:
                return module.fill(into, config, tensors, device)
            return module.rebuild(config, tensors, device)
    except (FormatError, MissingExtraError):
        raise
    except Exception as error:  # a file may hold anything, so building from it may raise anything
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise FormatError(f"{CONFIG_FILE} must describe a {kind}: {reason:.400}") from None


def check_format(config: Any, *formats: str) -> str:
    """The format of a config; raises unless it is one of `formats`, or any if there are none, of this version."""
    known = formats or (*FORMATS, *(plugin.name for plugin in _plugins()))
    kind = config.get("format") if isinstance(config, dict) else None
    if kind not in known:
        hint = f"; to read it, pip install {ELSEWHERE[kind]}" if not formats and kind in ELSEWHERE else ""
        raise FormatError(f"{CONFIG_FILE} must have format {' or '.join(map(repr, known))}: got {kind!r:.60}{hint}")
    version = config.get("version")
    if version != VERSION:
        hint = "; a newer dendritree wrote it" if type(version) is int and version > VERSION else ""
        raise FormatError(f"{CONFIG_FILE} must have version {VERSION}: got {version!r}{hint}")
    return str(kind)


def _module(kind: str) -> Any:
    """The module that describes and rebuilds objects of a format."""
    if kind in FORMATS:
        return importlib.import_module(FORMATS[kind])
    return _plugins()[kind].load()


def _plugins() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group="dendritree.formats")


def entry(config: Mapping[str, Any], key: str, *kinds: type) -> Any:
    """A value of a config; raises unless its type is one of these: dict, list, str, int, float, bool or NoneType.

    >>> entry({"epochs": True}, "epochs", int)
    Traceback (most recent call last):
    dendritree.errors.FormatError: epochs in config.json must be of type int: got True
    """
    value = config.get(key)
    if type(value) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise FormatError(f"{key} in {CONFIG_FILE} must be of type {names}: got {value!r:.60}")
    return value


# ----------------------------------------------------------------------------------------------------------- files


def _weights_file(config: Mapping[str, Any]) -> str:
    return f"weights-{entry(config, WEIGHTS_DIGEST, str)[:8]}.safetensors"


def _read_config(folder: str | os.PathLike[str], *formats: str) -> dict[str, Any]:
    def reject(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON value")

    content = _read_bytes(Path(folder) / CONFIG_FILE)
    try:
        config = json.loads(content, parse_constant=reject)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{CONFIG_FILE} must be JSON: {error!s:.200}") from None
    check_format(config, *formats)
    return config  # type: ignore[no-any-return]


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"a model folder must hold {path.name}: {error.strerror}") from None


def _check_device(device: torch.device | str | None) -> None:
    try:
        torch.empty(0, device=device)
    except Exception as error:  # each backend raises its own
        reason = str(error).partition("\n")[0]
        raise OptionError(f"device must be available to torch: got {str(device)!r} ({reason:.200})") from None
