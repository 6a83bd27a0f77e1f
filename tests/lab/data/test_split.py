"""Examples and their three parts."""

import dataclasses
import hashlib
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import ShapeError
from dendritree.training.examples import Examples, Split, fixed_order
from dendritree_lab.data import first_examples


def make_examples(count, *shape, targets=None):
    return Examples(torch.zeros(count, *shape), torch.zeros(count if targets is None else targets))


@pytest.mark.parametrize("shape", [(), (4,), (1, 8, 8)])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_examples_count_their_rows(count, shape):
    assert len(make_examples(count, *shape)) == count


def test_examples_move_inputs_and_targets_together():
    moved = make_examples(3, 4).to("meta")
    assert (moved.x.device.type, moved.y.device.type) == ("meta", "meta")
    assert moved.x.shape == (3, 4)


def test_parts_may_differ_in_size_and_be_empty():
    split = Split(make_examples(5, 4), make_examples(0, 4), make_examples(1, 4))
    assert [len(split.train), len(split.val), len(split.test)] == [5, 0, 1]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("targets", [0, 4, 6])
def test_a_part_with_more_or_fewer_targets_than_inputs_is_rejected_by_name(place, targets):
    parts = [make_examples(5, 4) for _ in range(3)]
    parts[place] = make_examples(5, 4, targets=targets)
    name = ("train", "val", "test")[place]
    with pytest.raises(ShapeError, match=rf"^{name} must have one y for each x.*got x \(5, 4\), y \({targets},\)"):
        Split(*parts)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (4, 1)])
def test_a_part_with_inputs_of_another_shape_is_rejected_by_name(place, shape):
    parts = [make_examples(5, 4) for _ in range(3)]
    parts[place] = make_examples(5, *shape)
    name = ("train", "val", "test")[place]
    with pytest.raises(ShapeError, match=rf"^{name} must have .* shape of the training inputs: got x \(5,"):
        Split(*parts)


def test_a_split_cannot_be_rearranged():
    split = Split(*[make_examples(2, 4)] * 3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="train"):
        split.train = split.test
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        split.train.x = torch.ones(2, 4)


def test_features_name_each_column_of_the_inputs_or_none():
    parts = [make_examples(5, 2) for _ in range(3)]
    assert Split(*parts).features == ()
    assert Split(*parts, features=("width", "height")).features == ("width", "height")


@pytest.mark.parametrize("features", [("width",), ("width", "height", "depth")])
def test_too_few_or_too_many_names_are_rejected(features):
    parts = [make_examples(5, 2) for _ in range(3)]
    message = rf"^features must name each column of x, or none: got {len(features)} names, x \(5, 2\)$"
    with pytest.raises(ShapeError, match=message):
        Split(*parts, features=features)


@pytest.mark.parametrize("count", [0, 1, 7, 60_000])
def test_the_fixed_order_holds_every_example_once_and_is_the_same_at_every_call(count):
    order = fixed_order(count)
    assert np.array_equal(np.sort(order), np.arange(count))
    assert np.array_equal(order, fixed_order(count))


def test_the_fixed_order_is_the_one_that_results_were_published_with():
    """NumPy may change what its generator gives: then splits change, and this must be seen."""
    order = fixed_order(60_000)
    assert order[:5].tolist() == [4013, 23840, 29603, 43011, 58703]
    assert hashlib.md5(order.astype("<i8").tobytes()).hexdigest() == "32dc5781b001ee68119932d33e217163"


# ------------------------------------------------------------------------------------------------- fewer to train on


def numbered_split(count):
    """Training examples whose input and target both say which one they are."""
    train = Examples(torch.arange(count, dtype=torch.float32)[:, None].repeat(1, 2), torch.arange(count))
    return Split(train, make_examples(3, 2), make_examples(4, 2), features=("width", "height"))


@given(data=st.data(), count=st.integers(1, 300))
def test_fewer_training_examples_are_the_first_in_the_fixed_order(data, count):
    split, kept = numbered_split(count), data.draw(st.integers(1, count))
    limited = first_examples(split, kept)
    assert limited.train.y.tolist() == sorted(np.random.default_rng(0).permutation(count)[:kept].tolist())
    assert torch.equal(limited.train.x[:, 0].long(), limited.train.y)  # targets stay with their inputs
    assert limited.val is split.val
    assert limited.test is split.test
    assert limited.features == split.features


def test_a_larger_training_part_holds_the_smaller_ones_and_the_largest_is_the_whole():
    split = numbered_split(1000)
    chosen = [set(first_examples(split, count).train.y.tolist()) for count in (1, 128, 256, 512, 1000)]
    assert [len(part) for part in chosen] == [1, 128, 256, 512, 1000]
    assert all(small < large for small, large in itertools.pairwise(chosen))
    whole = first_examples(split, 1000).train
    assert torch.equal(whole.x, split.train.x)
    assert torch.equal(whole.y, split.train.y)


def test_fewer_training_examples_come_from_everywhere():
    chosen = first_examples(numbered_split(10_000), 500).train.y
    assert torch.bincount(chosen // 2500, minlength=4).min() > 90  # of 125 expected


def test_a_count_may_be_one_of_numpys_integers():
    assert len(first_examples(numbered_split(10), np.int64(4)).train) == 4


@pytest.mark.parametrize("count", [0, -1, 11, 10**9, 2.0, 0.5, True, "4", None])
def test_more_examples_than_there_are_or_none_are_rejected(count):
    with pytest.raises(ShapeError) as caught:
        first_examples(numbered_split(10), count)
    assert str(caught.value) == f"count must be an integer from 1 to the 10 training examples: got {count!r}"
