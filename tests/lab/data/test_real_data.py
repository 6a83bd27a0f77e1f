"""The real data sets: sizes, ranges and figures that are known of them. Skipped, with the reason, if not available."""

import hashlib
import math

import numpy as np
import pytest
import torch

from dendritree_lab.data import DATASETS, load_dataset, read_images
from dendritree_lab.data.catalog import FILE_SETS

SPLITS = {
    "digits": (1_197, 300, 300, "9a19bfa8158dd74983c8d1f718abeed5"),
    "mnist": (50_000, 10_000, 10_000, "71b45be18eb5ac141e14e080b3d323f4"),
    "mnist-4-9": (9_799, 1_992, 1_991, "b36ad94ed4246dd4c558e49b21ef189b"),
    "mnist-pairs": (50_000, 10_000, 10_000, "3ebec72de116b23c286b1656fd66b536"),
    "fashion-mnist": (50_000, 10_000, 10_000, "def2529fc8d4dab41b1e84a75e162a01"),
    "fashion-pairs": (50_000, 10_000, 10_000, "432522a3248f2b333bb8866369e83670"),
    "cifar10": (40_000, 10_000, 10_000, None),
    "adult": (26_049, 6_512, 16_281, None),  # its standardized numbers may differ in their last bit between machines
    "california-housing": (12_384, 4_128, 4_128, "d34c480047623002056bd8298c169d55"),
    "tinyshakespeare": (892_284, 111_507, 111_507, "c2f284fff6f7caf2317a1f8dd98807d4"),
}
"""Sizes of the parts, and an MD5 of the examples that results were published with."""


@pytest.fixture(scope="module")
def loaded(request, real_data):
    """A data set, by name; tests of one data set are run after each other and share it."""
    if request.param in FILE_SETS:
        real_data(request.param)
    return request.param, load_dataset(request.param, download=False)


def of(*names):
    return pytest.mark.parametrize("loaded", names, indirect=True, scope="module")


@of(*DATASETS)
def test_every_data_set_has_its_description_and_the_published_examples(loaded):
    name, split = loaded
    *sizes, digest = SPLITS[name]
    assert list(map(len, split.parts)) == sizes
    examples = hashlib.md5()
    for part in split.parts:
        examples.update(part.x[-5000:].contiguous().numpy().tobytes())
        examples.update(part.y.numpy().tobytes())
    assert digest in (None, examples.hexdigest())
    described = DATASETS[name]
    assert split.train.x.shape[1] == described.in_features
    assert (split.name, split.image_shape, len(split.classes)) == (name, described.image_shape, described.classes or 0)
    assert len(split.features) == (split.train.x.shape[1] if name in ("adult", "california-housing") else 0)
    if split.image_shape is not None:
        assert split.train.x.shape[1] == math.prod(split.image_shape)
        assert (split.train.x.min(), split.train.x.max()) == (0, 1)
    for part in split.parts:
        if described.classes is None:
            assert part.y.dtype == torch.float32
        elif part is split.train or name != "tinyshakespeare":  # rare letters are not in every tenth of the text
            assert part.y.unique().tolist() == list(range(described.classes))


# ----------------------------------------------------------------------------------------------------------- images


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
    assert (images.train_images.shape, images.test_images.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert images.train_labels[:5].tolist() == first
    assert np.bincount(images.train_labels).tolist() == counts
    if name == "mnist":  # the mean and deviation of the paper
        share, value = (
            np.bincount(images.train_images.reshape(-1), minlength=256) / (60_000 * 784),
            np.arange(256) / 255,
        )
        mean = share @ value
        assert (round(mean, 4), round(math.sqrt(share @ (value - mean) ** 2), 4)) == (0.1307, 0.3081)


@of("cifar10")
def test_cifar_has_a_thousand_test_images_of_each_class_and_its_known_mean(loaded):
    _, split = loaded
    assert torch.bincount(torch.cat([split.train.y, split.val.y])).tolist() == [5000] * 10
    assert torch.bincount(split.test.y).tolist() == [1000] * 10
    assert split.test.y[:5].tolist() == [3, 8, 8, 0, 6]  # a cat, two ships, an airplane, a frog
    pixels = torch.cat([split.train.x, split.val.x]).reshape(-1, 3, 1024)
    assert pixels.mean((0, 2), dtype=torch.float64).tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)


# ----------------------------------------------------------------------------------------------------------- tables


@of("adult")
def test_the_people_of_adult(loaded):
    """7,841 of 32,561 and 3,846 of 16,281 earn more than 50,000 dollars; 1,836 did not say for whom they work."""
    _, split = loaded
    assert ((split.train.y.sum() + split.val.y.sum()).item(), split.test.y.sum().item()) == (7841, 3846)
    unknown = split.features.index("workclass=?")
    assert (split.train.x[:, unknown].sum() + split.val.x[:, unknown].sum()).item() == 1836
    numbers = ["=" not in name for name in split.features]
    assert sum(numbers) == 6
    assert split.train.x[:, numbers].mean(0).abs().max() < 1e-4
    assert (split.train.x[:, numbers].std(0) - 1).abs().max() < 1e-4
    assert (split.val.x[:, ~torch.tensor(numbers)].sum(1) == 8).all()  # one of each of the eight
