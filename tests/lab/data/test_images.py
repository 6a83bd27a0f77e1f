"""Images: splits of files that we make, and the two transforms against their definitions."""

import dataclasses
import random

import numpy as np
import pytest
import torch
from data_cases import make_arrays, make_contents
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree_lab.data import normalize, read_images, upsample
from dendritree_lab.data.images import Images, parse_images, split_four_nine, split_images


@pytest.fixture(scope="module")
def images():
    return parse_images(*make_contents(train=200, test=50).values())


def test_the_four_files_are_read_in_their_order(images):
    for field, array in zip(dataclasses.fields(Images), make_arrays(train=200, test=50), strict=True):
        assert np.array_equal(getattr(images, field.name), array)
        assert getattr(images, field.name).flags.writeable


def test_a_split_holds_every_training_image_once_and_the_test_images_in_order(images):
    split = split_images(images, validation=40)
    assert [len(split.train), len(split.val), len(split.test)] == [160, 40, 50]
    order = np.random.default_rng(0).permutation(200)
    pixels = torch.cat([split.val.x, split.train.x]).mul(255).round().numpy().astype(np.uint8)
    assert np.array_equal(pixels, images.train_images[order].reshape(200, 784))
    assert torch.cat([split.val.y, split.train.y]).tolist() == images.train_labels[order].tolist()
    assert torch.equal(split.test.x, torch.tensor(images.test_images.reshape(50, 784) / np.float32(255)))
    assert split.test.y.tolist() == images.test_labels.tolist()


def test_pixels_are_floats_from_0_to_1_and_classes_whole_numbers(images):
    split = split_images(images, validation=40)
    for part in (split.train, split.val, split.test):
        assert (part.x.dtype, part.y.dtype) == (torch.float32, torch.int64)
        assert part.x.min() == 0
        assert part.x.max() == 1


def test_fours_are_0_and_nines_are_1_in_the_same_parts_and_order(images):
    whole, pair = split_images(images, validation=40), split_four_nine(images, validation=40)
    for name in ("train", "val", "test"):
        of = getattr(whole, name)
        expected = [(x, int(y == 9)) for x, y in zip(of.x, of.y, strict=True) if y in (4, 9)]
        part = getattr(pair, name)
        assert part.y.tolist() == [y for _, y in expected]
        assert torch.equal(part.x, torch.stack([x for x, _ in expected]))
        assert part.y.dtype == torch.int64


def test_a_split_shares_no_memory_with_the_images_and_leaves_random_state_alone(images):
    torch.manual_seed(5)
    random.seed(5)
    before = torch.get_rng_state(), random.getstate()
    split_images(images, validation=40).test.x.zero_()
    assert images.test_images.any()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


@pytest.mark.parametrize("name", ["digits", "mnist-4-9", "adult", "mnst", None])
def test_only_the_two_image_data_sets_are_read_as_images(name):
    with pytest.raises(OptionError, match=f"^image data set must be one of 'mnist', 'fashion-mnist': got {name!r}"):
        read_images(name)


# -------------------------------------------------------------------------------------------------------- transforms


@given(value=st.floats(0, 1))
def test_normalising_takes_the_papers_mean_and_deviation(value):
    x = torch.tensor([value], dtype=torch.float64)
    assert normalize(x).item() == pytest.approx((value - 0.1307) / 0.3081, rel=1e-12, abs=1e-12)
    assert x.item() == value  # a new tensor


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool])
def test_whole_numbers_cannot_be_normalised(dtype):
    with pytest.raises(OptionError, match=rf"^x must have floating-point pixels in \[0, 1\]: got {dtype}$"):
        normalize(torch.ones(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8])
@given(side=st.integers(1, 70), leading=st.lists(st.integers(0, 3), max_size=3))
def test_upsampling_is_torchs_nearest_neighbour(dtype, side, leading):
    x = torch.arange(int(np.prod([*leading, 784]))).remainder(251).to(dtype).reshape(*leading, 28, 28)
    larger = upsample(x, side)
    assert larger.shape == (*leading, side, side)
    assert larger.dtype == dtype
    if x.numel():
        expected = torch.nn.functional.interpolate(x.reshape(-1, 1, 28, 28), size=(side, side), mode="nearest")
        assert torch.equal(larger.reshape(-1, side, side), expected[:, 0])
    assert torch.equal(upsample(x.reshape(*leading, 784), side), larger.reshape(*leading, side * side))


def test_upsampling_to_32_repeats_every_eighth_row_and_column():
    """Row i of 32 shows row floor(i * 28 / 32), in whole numbers."""
    source = [i * 28 // 32 for i in range(32)]
    x = torch.rand(2, 28, 28)
    assert torch.equal(upsample(x), x[:, source][:, :, source])
    assert [i for i in range(1, 32) if source[i] == source[i - 1]] == [1, 9, 17, 25]


def test_upsampling_does_not_change_its_input_and_has_a_gradient():
    x = torch.rand(3, 784, requires_grad=True)
    upsample(x).sum().backward()
    assert x.grad.sum() == 3 * 1024


@pytest.mark.parametrize("shape", [(), (28,), (28, 27), (32, 32), (5, 1024), (784, 2)])
def test_other_shapes_are_rejected(shape):
    with pytest.raises(ShapeError, match=r"^x must be images \(..., 28, 28\) or rows of pixels .*: got \("):
        upsample(torch.zeros(shape))


@pytest.mark.parametrize("side", [0, -1, 2.5, None])
def test_a_side_is_a_positive_integer(side):
    with pytest.raises(OptionError, match=rf"^side must be an integer of at least 1: got {side}$"):
        upsample(torch.zeros(28, 28), side)
