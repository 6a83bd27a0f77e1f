"""The real data sets: sizes, ranges and figures that are known of them. Skipped, with the reason, if not available."""

import hashlib
import math

import numpy as np
import pytest
import torch

from dendritree import DendriticLayer, FitConfig, fit
from dendritree.training.examples import Split
from dendritree_lab.data import DATASETS, load_dataset, read_images
from dendritree_lab.data.catalog import FILE_SETS
from dendritree_lab.data.obtain import obtain

PARTS = ("train", "val", "test")
IN_FEATURES = {
    "mnist": 784,
    "mnist-4-9": 784,
    "mnist-pairs": 1568,
    "fashion-mnist": 784,
    "fashion-pairs": 1568,
    "cifar10": 3072,
    "digits": 64,
    "adult": 108,
    "california-housing": 8,
    "tinyshakespeare": 32,
}
NAMED_COLUMNS = ("adult", "california-housing")
SIZES = {
    **dict.fromkeys(("mnist", "mnist-pairs", "fashion-mnist", "fashion-pairs"), (50_000, 10_000, 10_000)),
    "cifar10": (40_000, 10_000, 10_000),
    "digits": (1197, 300, 300),
    "adult": (26_049, 6_512, 16_281),
    "california-housing": (12_384, 4_128, 4_128),
    "tinyshakespeare": (892_284, 111_507, 111_507),
}


@pytest.fixture(scope="module")
def loaded(request, real_data):
    """A data set, by name; tests of one data set are run after each other and share it."""
    if request.param in FILE_SETS:
        real_data(request.param)
    return request.param, load_dataset(request.param, download=False)


def of(*names):
    return pytest.mark.parametrize("loaded", names, indirect=True, scope="module")


@of(*DATASETS)
def test_every_listed_data_set_loads_with_its_sizes(loaded):
    name, split = loaded
    if name in SIZES:
        assert tuple(map(len, split.parts)) == SIZES[name]
    assert split.train.x.shape[1] == DATASETS[name].in_features == IN_FEATURES[name]
    assert all(part.x.dtype == (torch.int64 if name == "tinyshakespeare" else torch.float32) for part in split.parts)
    assert all(torch.stack(part.x.aminmax()).isfinite().all() for part in split.parts)
    assert len(split.features) == (split.train.x.shape[1] if name in NAMED_COLUMNS else 0)
    shape, classes = DATASETS[name].image_shape, DATASETS[name].classes
    if shape is not None:
        assert split.train.x.shape[1] == math.prod(shape)
        assert (split.train.x.min(), split.train.x.max()) == (0, 1)
    for part in split.parts:
        numbers = part.y.unique().tolist()
        assert part.y.is_floating_point() if classes is None else set(numbers) <= set(range(classes))
        if classes is not None and (part is split.train or name != "tinyshakespeare"):  # rare letters are in no tenth
            assert len(numbers) == classes
    assert (split.name, split.image_shape, len(split.classes)) == (name, shape, classes or 0)


def test_the_shapes_and_classes_that_models_are_made_for():
    assert {name: (data_set.image_shape, data_set.classes) for name, data_set in DATASETS.items()} == {
        "mnist": ((1, 28, 28), 10),
        "mnist-4-9": ((1, 28, 28), 2),
        "mnist-pairs": ((1, 28, 56), 100),
        "fashion-mnist": ((1, 28, 28), 10),
        "fashion-pairs": ((1, 28, 56), 100),
        "cifar10": ((3, 32, 32), 10),
        "digits": ((1, 8, 8), 10),
        "adult": (None, 2),
        "california-housing": (None, None),
        "tinyshakespeare": (None, 65),
    }


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
    assert images.train_images.shape == (60_000, 28, 28)
    assert images.test_images.shape == (10_000, 28, 28)
    assert images.test_labels.shape == (10_000,)
    assert all(array.dtype == np.uint8 for array in vars(images).values())
    assert images.train_labels[:5].tolist() == first
    assert np.bincount(images.train_labels).tolist() == counts


def test_the_files_of_mnist_are_the_official_ones_with_the_mean_and_deviation_of_the_paper(real_data):
    real_data("mnist")
    official = {file.name: file.digest for file in FILE_SETS["mnist"].files}
    obtained = obtain(FILE_SETS["mnist"], download=False)
    assert {name: f"md5:{hashlib.md5(file.content).hexdigest()}" for name, file in obtained.items()} == official
    pixels = np.frombuffer(obtained["train-images-idx3-ubyte"].content, np.uint8, offset=16)
    share, value = np.bincount(pixels, minlength=256) / pixels.size, np.arange(256) / 255
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


@of("tinyshakespeare")
def test_the_text_reads_on_from_row_to_row(loaded):
    _, split = loaded
    text = "".join(split.classes[number] for number in split.train.x[0])
    assert text == "First Citizen:\nBefore we proceed"
    assert torch.equal(split.train.x[1, -1], split.train.y[0])
    assert torch.equal(split.train.x[1:100, :-1], split.train.x[:99, 1:])
    model = torch.nn.Sequential(torch.nn.Embedding(65, 4), torch.nn.Flatten(), DendriticLayer(128, 65))
    small = Split(*(part.select(slice(0, 500)) for part in split.parts))
    assert fit(model, small, FitConfig(epochs=2, lr=0.02)).best.val_loss < math.log(65)


@of("mnist-4-9")
def test_fours_and_nines_are_all_of_theirs(loaded):
    _, split = loaded
    y = torch.cat([split.train.y, split.val.y])
    assert torch.bincount(y).tolist() == [5842, 5949]
    assert torch.bincount(split.test.y).tolist() == [982, 1009]
    whole = load_dataset("mnist", download=False)
    assert torch.equal(split.val.x, whole.val.x[(whole.val.y == 4) | (whole.val.y == 9)])


def digests(images):
    return np.array([hash(image.tobytes()) for image in images.numpy()])


@of("mnist-pairs", "fashion-pairs")
def test_real_pairs_hold_every_image_of_the_parents_part_once_on_either_side(loaded):
    name, pairs = loaded
    singles, of_part = load_dataset({"mnist-pairs": "mnist", "fashion-pairs": "fashion-mnist"}[name]), []
    for single, pair in zip(singles.parts, pairs.parts, strict=True):
        left, right = (digests(half) for half in pair.x.unflatten(1, (28, 56)).split(28, dim=2))
        images = sorted(zip(digests(single.x).tolist(), single.y.tolist(), strict=True))
        assert sorted(zip(left.tolist(), (pair.y // 10).tolist(), strict=True)) == images
        assert sorted(zip(right.tolist(), (pair.y % 10).tolist(), strict=True)) == images
        assert not (left == right).any()
        assert torch.bincount(pair.y).min() > 0
        of_part.append(np.unique(left))
    assert sum(map(len, of_part)) == len(np.unique(np.concatenate(of_part))) == 70_000


# ----------------------------------------------------------------------------------------------------------- tables


@of("adult")
def test_the_people_of_adult(loaded):
    """7,841 of 32,561 and 3,846 of 16,281 earn more than 50,000 dollars; 1,836 did not say for whom they work."""
    _, split = loaded
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


@of("california-housing")
def test_the_districts_of_california(loaded):
    _, split = loaded
    y = torch.cat([part.y for part in split.parts])
    assert y.dtype == torch.float32
    assert (y.min().item(), y.max().item()) == pytest.approx((0.14999, 5.00001))
    assert y.double().mean().item() == pytest.approx(2.06855817, abs=1e-6)
    assert split.features[0] == "longitude"
    assert split.features[-1] == "median_income"
    assert split.train.x[:, 0].max() < -114
