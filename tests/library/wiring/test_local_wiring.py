"""Local: pixels of small windows, inside the image, without repetition; near windows lie together."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from forests import unwired_forests
from hypothesis import given
from hypothesis import strategies as st
from wiring_cases import by_dendrite, by_neuron, neurons_of_nodes, seeds

from dendritree.errors import OptionError
from dendritree.tree import Forest
from dendritree.wiring import Local

shapes = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))


def owners(wiring, forest):
    """The inputs of everything that has a window: for each neuron, a list of lists."""
    inputs = wiring.image_shape[0] * wiring.image_shape[1] * wiring.image_shape[2]
    wired = forest.wired(wiring.index(forest, inputs), inputs)
    return by_dendrite(wired) if wiring.per == "dendrite" else [[read] for read in by_neuron(wired)]


def places(inputs, shape):
    """Rows and columns of pixels given by their numbers."""
    _, height, width = shape
    return [i % (height * width) // width for i in inputs], [i % width for i in inputs]


def spread(numbers):
    return max(numbers) - min(numbers)


def corner(inputs, shape):
    ys, xs = places(inputs, shape)
    return min(ys), min(xs)


per, place = st.sampled_from(["dendrite", "neuron"]), st.sampled_from(["near", "free"])


@given(unwired_forests, shapes, st.integers(1, 10), per, place, seeds)
def test_pixels_lie_in_one_window_and_are_not_repeated_while_it_has_more(forest, shape, window, per, place, seed):
    wiring = Local(window, per, place, shape, seed)
    size = shape[0] * min(window, shape[1]) * min(window, shape[2])
    for inputs in itertools.chain.from_iterable(owners(wiring, forest)):
        assert 0 <= min(inputs) <= max(inputs) < shape[0] * shape[1] * shape[2]
        assert all(spread(numbers) < window for numbers in places(inputs, shape))
        assert max(Counter(inputs).values()) == -(-len(inputs) // size)


@given(unwired_forests, shapes, st.integers(1, 5), seeds)
def test_near_windows_of_a_neuron_are_within_a_side_of_each_other(forest, shape, window, seed):
    for dendrites in owners(Local(window, "dendrite", "near", shape, seed), forest):
        inputs = [i for dendrite in dendrites for i in dendrite]
        assert all(spread(numbers) <= 2 * window - 1 for numbers in places(inputs, shape))


@pytest.mark.parametrize("per", ["dendrite", "neuron"])
def test_every_place_is_used_about_equally_often(per):
    shape = (2, 6, 5)
    forest = Forest.grow([18, 2] if per == "dendrite" else 18, fan_in=36 if per == "dendrite" else 18, neurons=20)
    actual = itertools.chain.from_iterable(owners(Local(3, per, "free", shape, 3), forest))
    counts = Counter(corner(inputs, shape) for inputs in actual)  # whole windows: the corner can be seen
    assert counts.keys() == set(itertools.product(range(4), range(3)))
    assert max(counts.values()) - min(counts.values()) <= 2


def test_a_window_larger_than_the_image_is_the_whole_of_it():
    (inputs,) = owners(Local(9, "neuron", "near", (1, 2, 5), 0), Forest.grow(10, fan_in=10))[0]
    assert sorted(inputs) == list(range(10))
    assert Local(9, image_shape=(1, 2, 5)).fan_in(10, 3) == 10
    assert Local(3, image_shape=(2, 2, 5)).fan_in(20, 3) == 2 * 2 * 3


# ------------------------------------------------------------------------------------------------------------ windows


@given(unwired_forests, shapes, st.integers(1, 10), per, place, seeds)
def test_windows_are_of_the_same_draw_as_the_pixels(forest, shape, window, per, place, seed):
    inputs, wiring = shape[0] * shape[1] * shape[2], Local(window, per, place, shape, seed)
    attachment = wiring.attach(forest, inputs)
    assert np.array_equal(attachment.inputs, wiring.index(forest, inputs))
    assert attachment.windows.shape == (forest.nodes, 4)
    assert attachment.windows.dtype == np.int32
    wired, windows_of = forest.wired(attachment.inputs, inputs), {}
    for node, neuron in enumerate(neurons_of_nodes(wired)):
        top, left, high, wide = attachment.windows[node].tolist()
        rows = wired.source[wired.offsets[node] : wired.offsets[node + 1]].tolist()
        read = [row for row in rows if row < inputs]
        if not read:
            assert (top, left, high, wide) == (0, 0, 0, 0)
            continue
        windows_of.setdefault(neuron, set()).add((top, left))
        assert (high, wide) == (min(window, shape[1]), min(window, shape[2]))
        assert 0 <= top <= shape[1] - high
        assert 0 <= left <= shape[2] - wide
        for y, x in zip(*places(read, shape), strict=True):
            assert top <= y < top + high
            assert left <= x < left + wide
    if per == "neuron":
        assert all(len(actual) == 1 for actual in windows_of.values())


# ------------------------------------------------------------------------------------------------------ seeds, options


@pytest.mark.parametrize("per", ["dendrite", "neuron"])
@pytest.mark.parametrize("place", ["near", "free"])
def test_seeds_govern_the_draw(per, place):
    forest, shape, before = Forest.grow([4, 4], neurons=3), (1, 12, 12), torch.get_rng_state()
    first, again, other = (Local(5, per, place, shape, seed).index(forest, 144) for seed in (1, 1, 2))
    assert first.dtype == np.int32
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
    actual = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        actual.append(Local(5, per, place, shape).index(forest, 144).tolist())
    assert actual[0] == actual[1] != actual[2]


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"window": 7.0}, {"per": "dendrites"}, {"place": "far"}, {"seed": -1}]
)
def test_bad_options_are_rejected(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Local(**options)
