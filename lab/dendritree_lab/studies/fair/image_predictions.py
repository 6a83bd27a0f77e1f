"""Predictions of a model that `dendritree tune` wrote, for images in files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from dendritree.errors import FormatError, OptionError
from dendritree.storage import load
from dendritree.storage.folders import CONFIG_FILE

from ...data.arrays import read_inputs
from ...data.image_folder import read_image
from ...data.inputs import INPUTS_FILE, Inputs
from .tuning import MODEL_FOLDER

AT_ONCE = 256
"""Images per call of the model."""


class ImagePrediction(NamedTuple):
    """The class of an image, and its probability."""

    file: str
    prediction: str
    probability: float


def predict_images(folder: str | os.PathLike[str], images: Sequence[Path]) -> Iterator[ImagePrediction]:
    """The prediction for every image, prepared as the images that the model was trained on.

    Args:
        folder: what `dendritree tune` wrote, or the model in it.
        images: PNG and JPEG files of any size.
    """
    place = Path(folder)
    place = place if (place / CONFIG_FILE).is_file() else place / MODEL_FOLDER
    inputs = Inputs.read(place) or Inputs.read(place.parent)
    if inputs is None or inputs.scaling is None or inputs.image_shape is None or len(inputs.classes) < 2:
        raise FormatError(
            f"images need a model that `dendritree tune` trained on images: {folder} has no {INPUTS_FILE}"
        )
    model = load(place)
    if not isinstance(model, nn.Module):
        raise OptionError(f"images need a network: {folder} has a {type(model).__name__}")
    model.eval()
    for start in range(0, len(images), AT_ONCE):
        part = images[start : start + AT_ONCE]
        rows, _ = read_inputs(np.stack([read_image(path, inputs.image_shape) for path in part]))
        with torch.inference_mode():
            out = model(inputs.scaling(torch.from_numpy(rows)))
        share = torch.cat([1 - out.sigmoid(), out.sigmoid()], 1) if out.shape[1] == 1 else out.softmax(1)
        best = share.max(1)
        for path, number, probability in zip(part, best.indices.tolist(), best.values.tolist(), strict=True):
            yield ImagePrediction(str(path), inputs.classes[number], round(probability, 4))
