"""The images of a trial: they depend only on its seed, so that all models of a task are trained on the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dendritree.training.examples import Examples

from ...data import load_dataset, normalize, read_images, upsample
from ...data.split import DataSplit
from ..engine.trial import seed_of
from .protocol import Protocol

SIDE = 32
"""Images are enlarged to 32x32, as in the paper: 1024 = 2^10 = 4^5 = 32^2."""


@dataclass(frozen=True)
class Draw:
    """The examples of several trials, features-major, so that their stacked models read them without a copy."""

    train_x: Tensor
    """(trials, features, images)"""
    train_y: Tensor
    """(trials, images)"""
    val_x: Tensor
    val_y: Tensor


@lru_cache(maxsize=2)
def _images(dataset: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Training images and labels to draw from; 4 -> 0 and 9 -> 1 for the binary task."""
    arrays = read_images("mnist" if dataset == "mnist-4-9" else dataset, data_dir=data_dir)
    images, labels = arrays.train_images, arrays.train_labels.astype(np.int64)
    if dataset == "mnist-4-9":
        chosen = (labels == 4) | (labels == 9)
        images, labels = images[chosen], (labels[chosen] == 9).astype(np.int64)
    return images, labels


def draw_trials(dataset: str, protocol: Protocol, indices: range, data_dir: str | None = None) -> Draw:
    """Draw the training and validation images of the trials `indices`.

    The draw depends on the data set and the trial's number, not on the model: comparisons are paired.
    """
    # NOTE[DIFF]: both parts come from the training images and do not overlap; the authors sampled 4-9 MNIST with
    # replacement. The test images are not used.
    images, labels = _images(dataset, data_dir)
    assert protocol.train_images is not None
    assert protocol.val_images is not None
    total, train = protocol.train_images + protocol.val_images, protocol.train_images
    picks = []
    for index in indices:
        generator = np.random.default_rng(seed_of("draw", dataset, protocol.draw_of(index)))
        picks.append(generator.choice(len(labels), total, replace=False))
    x = _rows(images[np.concatenate(picks)]).view(len(picks), total, -1)  # (trials, images, features)
    y = torch.from_numpy(labels[np.stack(picks)])
    x = x.transpose(1, 2)
    return Draw(x[:, :, :train].contiguous(), y[:, :train], x[:, :, train:].contiguous(), y[:, train:])


@lru_cache(maxsize=1)
def full_split(dataset: str, data_dir: str | None = None) -> DataSplit:
    """The data set's fixed parts, as the models take them."""
    split = load_dataset(dataset, data_dir=data_dir)
    return DataSplit(*(Examples(upsample(normalize(part.x), SIDE), part.y) for part in split.parts))


def _rows(images: np.ndarray) -> Tensor:
    return upsample(normalize(torch.from_numpy(images).float().div_(255).flatten(1)), SIDE)
