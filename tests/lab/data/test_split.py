"""The three parts of a data set: names and shapes, fewer training examples, scaling, and a copy in a file."""

import hashlib
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from own_data import blobs

from dendritree.errors import DendritreeError, FormatError, ShapeError
from dendritree.training.examples import Examples, fixed_order
from dendritree_lab.data import DataSplit, Scaling, first_examples, load_dataset, normalize
from dendritree_lab.data.inputs import INPUTS_FILE, Inputs
from dendritree_lab.data.split import CLIP, read_split, write_split


def make_examples(count, *shape):
    return Examples(torch.zeros(count, *shape), torch.zeros(count))


@pytest.mark.parametrize("wrong", [{"features": ("width",)}, {"features": tuple("abc")}, {"image_shape": (1, 2, 2)}])
def test_names_and_shapes_must_fit_the_inputs(wrong):
    parts = [make_examples(5, 2) for _ in range(3)]
    assert DataSplit(*parts, features=("width", "height"), image_shape=(1, 1, 2)).image_shape == (1, 1, 2)
    with pytest.raises(ShapeError, match=next(iter(wrong))):
        DataSplit(*parts, **wrong)


def test_the_fixed_order_is_the_one_that_results_were_published_with():
    """NumPy may change what its generator gives: then splits change, and this must be seen."""
    order = fixed_order(60_000)
    assert np.array_equal(np.sort(order), np.arange(60_000))
    assert order[:5].tolist() == [4013, 23840, 29603, 43011, 58703]
    assert hashlib.md5(order.astype("<i8").tobytes()).hexdigest() == "32dc5781b001ee68119932d33e217163"


# ------------------------------------------------------------------------------------------- fewer training examples


def numbered_split(count):
    """Training examples whose input and target both say which one they are."""
    train = Examples(torch.arange(count, dtype=torch.float32)[:, None].repeat(1, 2), torch.arange(count))
    return DataSplit(train, make_examples(3, 2), make_examples(4, 2), features=("width", "height"))


@given(data=st.data(), count=st.integers(1, 300))
def test_fewer_training_examples_are_the_first_in_the_fixed_order(data, count):
    split, kept = numbered_split(count), data.draw(st.integers(1, count))
    limited = first_examples(split, kept)
    assert limited.train.y.tolist() == sorted(np.random.default_rng(0).permutation(count)[:kept].tolist())
    assert torch.equal(limited.train.x[:, 0].long(), limited.train.y)  # targets stay with their inputs
    assert limited.val is split.val
    assert limited.test is split.test
    assert limited.features == split.features


@pytest.mark.parametrize("count", [0, -1, 11, 2.0, True, "4", None])
def test_more_examples_than_there_are_or_none_are_rejected(count):
    with pytest.raises(DendritreeError, match="count"):
        first_examples(numbered_split(10), count)


# ----------------------------------------------------------------------------------------------------------- scaling


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
    with pytest.raises(FormatError, match="3 for 4"):
        Scaling.of(x)(torch.rand(2, 4))


def test_a_fixed_scaling_goes_before_that_of_the_examples():
    digits = load_dataset("digits")
    assert torch.equal(digits.scaled().test.x, normalize(digits.test.x))
    own = load_dataset(blobs(40))
    assert own.scaling is None
    scaled = own.scaled()
    assert scaled.scaling == Scaling.of(own.train.x, (1, 8, 8))
    assert (scaled.image_shape, scaled.classes) == (own.image_shape, own.classes)


# ------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("images", [True, False])
def test_a_stored_split_is_read_back_to_the_same_bits(tmp_path, images):
    x, y = blobs(40) if images else (np.random.default_rng(0).random((40, 3)), np.random.default_rng(1).random(40))
    split = load_dataset((x, y))
    write_split(split, tmp_path / "stored.npz")
    stored = read_split(tmp_path / "stored.npz")
    for ours, theirs in zip(split.parts, stored.parts, strict=True):
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)
        assert (ours.x.dtype, ours.y.dtype) == (theirs.x.dtype, theirs.y.dtype)
    assert (stored.classes, stored.image_shape) == (split.classes, split.image_shape)
    if images:  # one byte per pixel
        assert (tmp_path / "stored.npz").stat().st_size < 2 * x.size + 4000


def test_a_description_of_inputs_is_read_back_to_the_same_bits(tmp_path):
    inputs = Inputs("houses.csv", "price", features=("a", "b", "c"), scaling=Scaling.of(torch.rand(20, 3)))
    inputs.write(tmp_path)
    assert Inputs.read(tmp_path) == inputs
    values = json.loads((tmp_path / INPUTS_FILE).read_text())
    for wrong in ({"scaling": {"mean": [1.0]}}, {"classes": 3}, {"image": ["a"]}):
        (tmp_path / INPUTS_FILE).write_text(json.dumps(values | wrong))
        with pytest.raises(FormatError, match=INPUTS_FILE):
            Inputs.read(tmp_path)
