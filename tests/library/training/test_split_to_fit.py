"""Examples, their three parts, and what `fit` accepts as data."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from dendritree import DendriticLayer, FitConfig, fit
from dendritree.errors import OptionError, ShapeError
from dendritree.training.examples import Examples, Split, split_to_fit

PARTS = ("train", "val", "test")
Y = np.arange(40) % 2 + 3
X = np.random.default_rng(0).random((40, 8, 8)) - 2 * (Y == 3)[:, None, None]


def make_examples(count, *shape, targets=None):
    return Examples(torch.zeros(count, *shape), torch.zeros(count if targets is None else targets))


def test_examples_move_together_and_cannot_be_rearranged():
    moved = make_examples(3, 4).to("meta")
    assert (moved.x.device.type, moved.y.device.type, len(moved)) == ("meta", "meta", 3)
    split = Split(make_examples(5, 4), make_examples(0, 4), make_examples(1, 4))
    assert [len(part) for part in split.parts] == [5, 0, 1]
    with pytest.raises(dataclasses.FrozenInstanceError, match="train"):
        split.train = split.test


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("part", [make_examples(5, 4, targets=6), make_examples(5, 3), make_examples(5, 4, 1)])
def test_a_part_of_other_shapes_is_rejected_by_name(number, part):
    parts = [make_examples(5, 4) for _ in range(3)]
    parts[number] = part
    with pytest.raises(ShapeError, match=PARTS[number] if len(part.x) != len(part.y) or number else "val"):
        Split(*parts)


@pytest.mark.parametrize("form", ["numpy", "torch", "dataset", "loader"])
def test_a_model_is_fitted_on_examples_in_their_shape(form):
    tensors = torch.from_numpy(X).float(), torch.from_numpy(Y)
    dataset = TensorDataset(*tensors)
    data = {"numpy": (X, Y), "torch": tensors, "dataset": dataset, "loader": DataLoader(dataset, shuffle=True)}[form]
    split = split_to_fit(data)
    assert split.train.x.shape == (32, 8, 8)
    assert split.train.x.dtype == torch.float32
    assert (len(split.val), len(split.test)) == (8, 0)
    assert split.val.y.unique().tolist() == [3, 4]  # y as it is
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Flatten(), DendriticLayer(64, 5))
        history = fit(model, data, FitConfig(epochs=20, lr=0.02))
    assert history.best.val_acc == 1.0


def test_bytes_of_images_are_numbers_from_0_to_1_and_other_bytes_stay():
    pixels = np.arange(40 * 64, dtype=np.uint8)
    assert split_to_fit((pixels.reshape(40, 8, 8), Y)).train.x.max() == 1
    assert split_to_fit((pixels.reshape(40, 64), Y)).train.x.dtype == torch.uint8


def test_validation_examples_that_are_given_are_kept():
    split = split_to_fit({"train": (X, Y), "val": (X[:5], Y[:5])})
    assert (len(split.train), len(split.val)) == (40, 5)
    with pytest.raises(OptionError, match="parts must be train"):
        split_to_fit({"x": X, "y": Y})
