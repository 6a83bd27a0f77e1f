"""`save` and `load`: models, the scikit-learn estimators that hold one, and models of tables, without pickle."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from ..errors import OptionError
from .folders import MODEL_FORMAT, read_folder, save

__all__ = ["load", "load_model", "save"]


def load(
    folder: str | os.PathLike[str], *, into: nn.Module | None = None, device: torch.device | str | None = None
) -> Any:
    """Read what `save` wrote: a network in evaluation mode, an estimator, or a model of a table.

    An estimator predicts as it did; `partial_fit` resumes from its weights, with a new optimizer. Torch's random state
    is left as it was.

    Args:
        folder: that `save` wrote.
        into: a network to be filled, in place, and returned: for a model of a class of your own, which no file can
            build. Layers of this library are put in as they were saved: the original of a conversion is converted, a
            pruned layer is pruned. Everything else must be there, with the same names, shapes and types. After an
            error the network is as it was.
        device: to move it to.

    >>> import pathlib, tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4).eval()
    >>> save(net, folder := pathlib.Path(tempfile.mkdtemp()) / "net")
    >>> bool((load(folder)(torch.ones(2, 16)) == net(torch.ones(2, 16))).all())
    True
    """
    if into is not None and not isinstance(into, nn.Module):
        raise OptionError(f"into must be an nn.Module: got {type(into).__name__}")
    return read_folder(folder, device=device, into=into)


def load_model(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> nn.Module:
    """Read a network that `save` wrote; folders of estimators and of models of tables raise `FormatError`."""
    model: nn.Module = read_folder(folder, MODEL_FORMAT, device=device)
    return model
