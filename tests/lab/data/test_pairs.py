"""Pairs of images: who stands beside whom, against pictures put together by hand; the real ones: test_real_data.py."""

import hashlib
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree.training.examples import Examples, Split
from dendritree_lab.data.pairs import SEEDS, draw_pairs, pair_images

PARTS = ("train", "val", "test")
COUNTS = {"train": 30, "val": 12, "test": 7}


def make_split(side=3, counts=COUNTS, dtype=torch.float32):
    """Images of which no two have a pixel in common, so that any pixel names its image."""
    numbers = iter(range(10**6))
    parts = []
    for name in PARTS:
        first = [next(numbers) for _ in range(counts[name])]
        x = torch.tensor(first, dtype=dtype)[:, None] * side**2 + torch.arange(side**2, dtype=dtype)
        parts.append(Examples(x, torch.tensor(first, dtype=torch.long) * 7 % 10))
    return Split(*parts)


# --------------------------------------------------------------------------------------------------------- the drawing


@given(count=st.integers(0, 40).filter(lambda count: count != 1), seed=st.integers(0, 2**32))
def test_each_image_is_once_on_either_side_and_never_beside_itself(count, seed):
    left, right = draw_pairs(count, seed)
    assert sorted(left) == sorted(right) == list(range(count))
    assert not (left == right).any()


@pytest.mark.parametrize("agreeing", [0, 1, 2, 3])
def test_only_pairs_of_an_image_with_itself_are_changed_and_one_alone_takes_its_neighbour(agreeing):
    count, found = 8, 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        plain_left, plain_right = generator.permutation(count), generator.permutation(count)
        clashes = [i for i in range(count) if plain_left[i] == plain_right[i]]
        if len(clashes) != agreeing:
            continue
        found += 1
        left, right = draw_pairs(count, seed)
        moved = {*clashes, (clashes[0] + 1) % count} if agreeing == 1 else set(clashes)
        assert left.tolist() == plain_left.tolist()
        assert {i for i in range(count) if right[i] != plain_right[i]} == moved
    assert found > 5  # the case was there


@pytest.mark.parametrize(
    ("part", "count", "first", "digest"),
    [
        ("train", 50_000, [(41261, 1966), (19539, 38055), (19954, 8772)], "7b54415b05c47b64969fd9888a649525"),
        ("val", 10_000, [(2418, 814), (2892, 6079), (9424, 9665)], "faaa2cf628ee23f7c43ab665e485e1ac"),
        ("test", 10_000, [(3194, 3646), (8925, 2772), (96, 2851)], "cb2454b9813d76d45589963013d0fa50"),
    ],
)
def test_the_pairs_are_those_that_results_were_published_with(part, count, first, digest):
    """NumPy may change what its generator gives: then the data sets change, and this must be seen."""
    left, right = draw_pairs(count, SEEDS[part])
    assert list(zip(left[:3].tolist(), right[:3].tolist(), strict=True)) == first
    assert hashlib.md5(left.astype("<i8").tobytes() + right.astype("<i8").tobytes()).hexdigest() == digest


# --------------------------------------------------------------------------------------------------------- the images


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(side=st.integers(1, 6), counts=st.lists(st.integers(0, 12).filter(lambda n: n != 1), min_size=3, max_size=3))
def test_a_pair_is_its_two_images_side_by_side_and_its_class_both_digits(dtype, side, counts):
    split = make_split(side, dict(zip(PARTS, counts, strict=True)), dtype)
    pairs = pair_images(split)
    for name in PARTS:
        images, labels = getattr(split, name).x.numpy(), getattr(split, name).y.tolist()
        part, order = getattr(pairs, name), draw_pairs(len(images), SEEDS[name])
        assert part.x.shape == (len(images), 2 * side * side)
        assert (part.x.dtype, part.y.dtype) == (dtype, torch.int64)
        assert part.x.is_contiguous()
        for x, y, left, right in zip(part.x.numpy(), part.y.tolist(), *order, strict=True):
            picture = np.hstack([images[left].reshape(side, side), images[right].reshape(side, side)])
            assert np.array_equal(x.reshape(side, 2 * side), picture)
            assert f"{y:02}" == f"{labels[left]}{labels[right]}"


def test_no_image_is_in_two_parts():
    seen = [set(getattr(pair_images(make_split()), name).x.flatten().tolist()) for name in PARTS]
    assert [len(pixels) for pixels in seen] == [9 * COUNTS[name] for name in PARTS]
    assert seen[0].isdisjoint(seen[1])
    assert seen[0].isdisjoint(seen[2])
    assert seen[1].isdisjoint(seen[2])


def test_parts_of_one_size_are_paired_in_different_ways():
    pairs = pair_images(Split(*[make_split().train] * 3))
    assert not torch.equal(pairs.train.x, pairs.val.x)
    assert not torch.equal(pairs.val.x, pairs.test.x)


def test_pairs_are_the_same_every_time_share_no_memory_and_leave_random_state_alone():
    split = make_split()
    kept = split.train.x.clone()
    torch.manual_seed(5)
    random.seed(5)
    before = torch.get_rng_state(), random.getstate()
    first, second = pair_images(split), pair_images(split)
    assert all(torch.equal(getattr(first, name).x, getattr(second, name).x) for name in PARTS)
    first.train.x.zero_()
    assert torch.equal(split.train.x, kept)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


# ----------------------------------------------------------------------------------------------------- what is rejected


@pytest.mark.parametrize("shape", [(5,), (5, 1568), (5, 28, 28), (5, 2)])
def test_inputs_that_are_no_square_images_are_rejected(shape):
    part = Examples(torch.zeros(shape), torch.zeros(5, dtype=torch.long))
    with pytest.raises(ShapeError) as caught:
        pair_images(Split(part, part, part))
    assert str(caught.value) == f"train must have the pixels of a square image in each row: got x {shape}"


def test_one_image_alone_is_rejected():
    split = make_split(counts={"train": 4, "val": 1, "test": 4})
    with pytest.raises(ShapeError, match=r"^val must have two images or more, or none: got 1$"):
        pair_images(split)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.tensor([3, 10, 4]), r"classes 0 \.\.\. 9: got 10$"),
        (torch.tensor([3, -1, 4]), r"classes 0 \.\.\. 9: got -1$"),
        (torch.rand(3), r"an integer class for each image: got y \(3,\), torch.float32$"),
        (torch.zeros(3, 1, dtype=torch.long), r"an integer class for each image: got y \(3, 1\), torch.int64$"),
    ],
)
def test_other_targets_than_ten_classes_are_rejected(y, message):
    good = make_split(counts=dict.fromkeys(PARTS, 3))
    with pytest.raises(OptionError, match=f"^test must have {message}"):
        pair_images(Split(good.train, good.val, Examples(good.test.x, y)))
