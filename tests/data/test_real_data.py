"""The real data sets: sizes, ranges and figures that are known of them. Skipped, with the reason, where not at hand."""

import hashlib
import math

import numpy as np
import pytest
import torch

from dendritree.data import DATASETS, load, read_images
from dendritree.data.catalogue import FILE_SETS
from dendritree.data.obtain import obtain

PARTS = ("train", "val", "test")
SIZES = {
    "mnist": (50_000, 10_000, 10_000, 784),
    "fashion-mnist": (50_000, 10_000, 10_000, 784),
    "mnist-pairs": (50_000, 10_000, 10_000, 1568),
    "fashion-pairs": (50_000, 10_000, 10_000, 1568),
    "digits": (1197, 300, 300, 64),
    "adult": (26_049, 6_512, 16_281, 108),
    "california-housing": (12_384, 4_128, 4_128, 8),
}


@pytest.mark.parametrize("name", DATASETS)
def test_every_listed_data_set_loads_with_its_sizes(name, real_data):
    if name in FILE_SETS:
        real_data(name)
    split = load(name, download=False)
    if name in SIZES:
        assert tuple(len(getattr(split, part)) for part in PARTS) == SIZES[name][:3]
        assert split.train.x.shape[1] == SIZES[name][3]
    assert all(getattr(split, part).x.dtype == torch.float32 for part in PARTS)
    assert all(getattr(split, part).x.isfinite().all() for part in PARTS)
    assert len(split.features) == (split.train.x.shape[1] if name in ("adult", "california-housing") else 0)
    shape, classes = DATASETS[name].image_shape, DATASETS[name].classes
    if shape is not None:
        assert split.train.x.shape[1] == math.prod(shape)
        assert (split.train.x.min(), split.train.x.max()) == (0, 1)
    for part in PARTS:
        y = getattr(split, part).y
        assert y.is_floating_point() if classes is None else y.unique().tolist() == list(range(classes))


def test_the_shapes_and_classes_that_models_are_made_for():
    assert {name: (data_set.image_shape, data_set.classes) for name, data_set in DATASETS.items()} == {
        "mnist": ((1, 28, 28), 10),
        "mnist-4-9": ((1, 28, 28), 2),
        "mnist-pairs": ((1, 28, 56), 100),
        "fashion-mnist": ((1, 28, 28), 10),
        "fashion-pairs": ((1, 28, 56), 100),
        "digits": ((1, 8, 8), 10),
        "adult": (None, 2),
        "california-housing": (None, None),
    }


def test_the_files_of_mnist_are_the_official_ones(real_data):
    real_data("mnist")
    official = {file.name: file.digest for file in FILE_SETS["mnist"].files}
    obtained = obtain(FILE_SETS["mnist"], download=False)
    assert {name: f"md5:{hashlib.md5(file.content).hexdigest()}" for name, file in obtained.items()} == official


@pytest.mark.parametrize(
    ("name", "first", "counts"),
    [
        # first labels, and how often each class occurs among the 60,000
        ("mnist", [5, 0, 4, 1, 9], [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        ("fashion-mnist", [9, 0, 0, 3, 0], [6000] * 10),
    ],
)
def test_images_are_read_in_the_order_of_the_files(name, first, counts, real_data):
    real_data(name)
    images = read_images(name, download=False)
    assert images.train_images.shape == (60_000, 28, 28)
    assert images.test_images.shape == (10_000, 28, 28)
    assert images.test_labels.shape == (10_000,)
    assert all(array.dtype == np.uint8 for array in vars(images).values())
    assert images.train_labels[:5].tolist() == first
    assert np.bincount(images.train_labels).tolist() == counts


def test_the_pixels_of_mnist_have_the_mean_and_deviation_that_the_paper_normalises_with(real_data):
    real_data("mnist")
    pixels = read_images("mnist", download=False).train_images / np.float32(255)
    assert (round(float(pixels.mean()), 4), round(float(pixels.std()), 4)) == (0.1307, 0.3081)


def test_fours_and_nines_are_all_of_theirs(real_data):
    real_data("mnist")
    split = load("mnist-4-9", download=False)
    y = torch.cat([split.train.y, split.val.y])
    assert torch.bincount(y).tolist() == [5842, 5949]
    assert torch.bincount(split.test.y).tolist() == [982, 1009]
    whole = load("mnist", download=False)
    assert torch.equal(split.val.x, whole.val.x[(whole.val.y == 4) | (whole.val.y == 9)])


def test_the_people_of_adult(real_data):
    """7,841 of 32,561 and 3,846 of 16,281 earn more than 50,000 dollars; 1,836 did not say for whom they work."""
    real_data("adult")
    split = load("adult", download=False)
    assert (split.train.y.sum() + split.val.y.sum()).item() == 7841
    assert split.test.y.sum().item() == 3846
    unknown = split.features.index("workclass=?")
    assert (split.train.x[:, unknown].sum() + split.val.x[:, unknown].sum()).item() == 1836
    numbers = [i for i, name in enumerate(split.features) if "=" not in name]
    assert len(numbers) == 6
    assert split.train.x[:, numbers].mean(0).abs().max() < 1e-4
    assert (split.train.x[:, numbers].std(0) - 1).abs().max() < 1e-4
    categories = [i for i in range(len(split.features)) if i not in numbers]
    assert (split.val.x[:, categories].sum(1) == 8).all()  # one of each of the eight


def test_the_districts_of_california(real_data):
    real_data("california-housing")
    split = load("california-housing", download=False)
    y = torch.cat([getattr(split, part).y for part in PARTS])
    assert y.dtype == torch.float32
    assert (y.min().item(), y.max().item()) == pytest.approx((0.14999, 5.00001))
    assert y.double().mean().item() == pytest.approx(2.06855817, abs=1e-6)
    assert split.features[0] == "longitude"
    assert split.features[-1] == "median_income"
    assert split.train.x[:, 0].max() < -114
