"""Inputs shifted and scaled by what the training examples have."""

import json

import pytest
import torch
from own_data import blobs

from dendritree.errors import FormatError
from dendritree_lab.data import Scaling, load_dataset, normalize
from dendritree_lab.data.scaling import CLIP


def test_channels_of_images_have_mean_0_and_deviation_1():
    x = torch.rand(50, 2 * 4 * 3) * torch.tensor([1.0, 5.0]).repeat_interleave(12)
    scaling = Scaling.of(x, (2, 4, 3))
    assert len(scaling.mean) == 2
    scaled = scaling(x).reshape(50, 2, 12)
    assert scaled.mean((0, 2)).abs().max() < 1e-5
    assert (scaled.std((0, 2)) - 1).abs().max() < 1e-2
    low, high = scaling.bounds(float(x.min()), float(x.max()))
    assert low <= scaled.min() + 1e-3
    assert high >= scaled.max() - 1e-3


def test_columns_have_their_own_mean_are_clipped_and_constant_ones_become_0():
    x = torch.randn(100, 3) * torch.tensor([1.0, 50.0, 0.0]) + torch.tensor([0.0, 7.0, 3.0])
    x[0, 0] = 1e6
    scaled = Scaling.of(x)(x)
    assert scaled.abs().max() <= CLIP
    assert (scaled[:, 2] == 0).all()
    assert scaled[:, 1].mean().abs() < 1e-5


def test_a_fixed_scaling_goes_before_that_of_the_examples():
    digits = load_dataset("digits")
    assert torch.equal(digits.scaled().test.x, normalize(digits.test.x))
    own = load_dataset(blobs(40))
    assert own.scaling is None
    scaled = own.scaled()
    assert scaled.scaling == Scaling.of(own.train.x, (1, 8, 8))
    assert scaled.train.x.mean().abs() < 1e-5
    assert (scaled.image_shape, scaled.classes) == (own.image_shape, own.classes)


def test_a_scaling_is_json_and_back_to_the_same_bits():
    x = torch.rand(20, 3)
    scaling = Scaling.of(x)
    assert Scaling.from_dict(json.loads(json.dumps(scaling.as_dict()))) == scaling
    with pytest.raises(FormatError, match="a scaling must have mean, sd and clip"):
        Scaling.from_dict({"mean": [1.0]})


def test_a_scaling_of_other_inputs_is_rejected():
    with pytest.raises(FormatError, match="a mean for each input or channel: got 3 for 4"):
        Scaling((0.0,) * 3, (1.0,) * 3)(torch.rand(2, 4))
