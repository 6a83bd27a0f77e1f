"""`save` and `load`: models, the scikit-learn estimators that hold one, and models of tables, without pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .folders import COLUMNS_FILE, ESTIMATOR_FORMAT, folder_format
from .models import load as load_model
from .models import save as save_model

__all__ = ["load", "save"]


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a registered model, a fitted `DendriticClassifier` or `DendriticRegressor`, or a `TableModel` to a folder.

    `load` reads it back. An existing model folder is replaced; any other existing path is refused.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4)
    >>> folder = Path(tempfile.mkdtemp()) / "net"
    >>> save(net, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.json', 'weights.safetensors']
    """
    from ..sklearn.tables.model import TableModel, save_table_model

    if isinstance(model, TableModel):
        save_table_model(model, folder)
        return
    if isinstance(model, nn.Module) or not hasattr(model, "get_params"):
        save_model(model, folder)
        return
    from ..sklearn.files import save_estimator

    save_estimator(model, folder)


def load(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> Any:
    """Read what `save` wrote: a model in evaluation mode, an estimator, or a model of a table.

    Torch's random state is left as it was.

    >>> import tempfile, dendritree
    >>> net = dendritree.create_model("mln", in_features=16, out_features=3, branching=4).eval()
    >>> save(net, folder := Path(tempfile.mkdtemp()) / "net")
    >>> bool((load(folder)(torch.ones(2, 16)) == net(torch.ones(2, 16))).all())
    True
    """
    if folder_format(Path(folder)) != ESTIMATOR_FORMAT:
        return load_model(folder, device=device)
    if (Path(folder) / COLUMNS_FILE).is_file():
        from ..sklearn.tables import load_table_model

        return load_table_model(folder, device=device)
    from ..sklearn.files import load_estimator

    return load_estimator(folder, device=device)
