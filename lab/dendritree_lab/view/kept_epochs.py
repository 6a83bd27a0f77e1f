"""Models as they were after each epoch, so that `dendritree view` can show how they learned."""

from __future__ import annotations

import os
from pathlib import Path

from dendritree.errors import check_int
from dendritree.storage import save
from dendritree.training import Run

EPOCH = "epoch-"
"""Prefix of the folders of kept epochs; their numbers are zero-padded, so that names sort by epoch."""


class KeepEpochs:
    """A callback for `fit` that saves the model after each epoch, including its wiring.

    Put it after a `Rewiring`. `dendritree view FOLDER` opens the epochs and has a button that plays them, so you can
    watch synapses move.

    Args:
        folder: where to save them, as `FOLDER/epoch-0001`.
        every: save every so many epochs, starting with the first.

    >>> import tempfile, torch
    >>> from dendritree import FitConfig, MLNClassifier, fit
    >>> data = torch.randn(100, 64), torch.arange(100) % 10
    >>> folder = Path(tempfile.mkdtemp())
    >>> net = MLNClassifier(64, 10, branching=8, output="logits")
    >>> _ = fit(net, data, FitConfig(epochs=3), callbacks=[KeepEpochs(folder, every=2)])
    >>> sorted(path.name for path in folder.iterdir())
    ['epoch-0001', 'epoch-0003']
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 1) -> None:
        self.folder, self.every = Path(folder), check_int("every", every)

    def __call__(self, run: Run) -> None:
        """Save the model if its epoch is due."""
        done = len(run.history.epochs)
        if (done - 1) % self.every == 0:
            save(run.model, self.folder / f"{EPOCH}{done:04}")
