"""The digits: every image of the file once, split the same way every time."""

import random
import sys
from collections import Counter

import numpy as np
import pytest
import sklearn.datasets
import torch

from dendritree.errors import MissingExtraError
from dendritree_lab import data
from dendritree_lab.data import load_dataset

PARTS = {"train": 1197, "val": 300, "test": 300}


@pytest.fixture(scope="module")
def split():
    return load_dataset("digits")


@pytest.fixture(scope="module")
def file_order():
    """Pixels of an image -> (its place in scikit-learn's file, its label)."""
    digits = sklearn.datasets.load_digits()
    places = {
        row.tobytes(): (i, int(label)) for i, (row, label) in enumerate(zip(digits.data, digits.target, strict=True))
    }
    assert len(places) == 1797  # no image is in the file twice, so pixels name it
    return places


def images(examples):
    """The images of a part as bytes of the file's own gray values, 0 ... 16 in double precision."""
    return [row.tobytes() for row in (examples.x.double().numpy() * 16).round()]


@pytest.mark.parametrize(("part", "size"), PARTS.items())
def test_parts_have_their_sizes_and_types(split, part, size):
    examples = getattr(split, part)
    assert examples.x.shape == (size, 64)
    assert examples.y.shape == (size,)
    assert examples.x.dtype == torch.float32
    assert examples.y.dtype == torch.int64


def test_pixels_run_from_0_to_1_in_sixteenths(split):
    x = torch.cat([split.train.x, split.val.x, split.test.x])
    assert x.min() == 0.0
    assert x.max() == 1.0
    assert torch.equal(x * 16, (x * 16).round())


def test_every_image_of_the_file_is_in_exactly_one_part(split, file_order):
    seen = Counter(image for part in PARTS for image in images(getattr(split, part)))
    assert set(seen) == set(file_order)
    assert set(seen.values()) == {1}


@pytest.mark.parametrize("part", PARTS)
def test_labels_stay_with_their_images(split, file_order, part):
    examples = getattr(split, part)
    assert [file_order[image][1] for image in images(examples)] == examples.y.tolist()


@pytest.mark.parametrize("part", PARTS)
def test_every_part_holds_all_ten_classes_in_fair_shares(split, part):
    y = getattr(split, part).y
    shares = torch.bincount(y, minlength=10) / len(y)
    assert len(shares) == 10
    assert shares.min() > 0.06
    assert shares.max() < 0.15


@pytest.mark.parametrize("part", PARTS)
def test_every_part_draws_from_the_whole_file(split, file_order, part):
    """Neighbors in the file come from the same writer, so a part must not be a stretch of it."""
    places = torch.tensor([file_order[image][0] for image in images(getattr(split, part))])
    thirds = torch.bincount(places * 3 // 1797, minlength=3) / len(places)
    assert thirds.min() > 0.2
    assert (places.diff() == 1).float().mean() < 0.05


def test_the_split_is_the_same_at_every_load_and_leaves_global_random_state(split):
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    random.seed(99)
    before = torch.get_rng_state(), str(np.random.get_state()), random.getstate()  # noqa: NPY002
    again = load_dataset("digits")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (str(np.random.get_state()), random.getstate()) == before[1:]  # noqa: NPY002
    for part in PARTS:
        assert torch.equal(getattr(split, part).x, getattr(again, part).x)
        assert torch.equal(getattr(split, part).y, getattr(again, part).y)


def test_a_load_does_not_share_memory_with_the_next_one():
    first = load_dataset("digits")
    first.train.x.fill_(7.0)
    assert load_dataset("digits").train.x.max() == 1.0


def test_without_scikit_learn_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)  # what an absent package looks like
    with pytest.raises(MissingExtraError, match=r"sklearn is needed .*: pip install 'dendritree\[data\]'$") as caught:
        load_dataset("digits")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("old", "new"), [("load", "load_dataset"), ("normalise", "normalize")])
def test_a_renamed_function_works_under_its_old_name_with_a_warning(old, new):
    with pytest.warns(DeprecationWarning, match=rf"^dendritree\.data\.{old} is now {new}; ") as caught:
        assert getattr(data, old) is getattr(data, new)
    assert caught[0].filename == __file__
    assert old not in data.__all__
    with pytest.raises(AttributeError, match=r"module 'dendritree\.data' has no attribute 'loud'"):
        data.loud  # noqa: B018
