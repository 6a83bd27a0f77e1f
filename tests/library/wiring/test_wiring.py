"""Wirings: which input each synapse reads, seen neuron by neuron."""

import pytest
from forests import as_lists, flat, unwired_forests
from hypothesis import given

from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest
from dendritree.wiring import Partition, Shared, resolve_wiring

UNEQUAL = Forest.join([Forest.grow(2, fan_in=4), Forest.nested([3]), Forest.grow(3, fan_in=5, ragged=True)])


def wired(forest, wiring, in_features):
    return as_lists(forest.wired(wiring.index(forest, in_features), in_features))


# ---------------------------------------------------------------------------------------------------------- fan_in


@pytest.mark.parametrize(
    ("in_features", "out_features", "fitting"),
    [(784, 10, "780 or 790"), (11, 5, "10 or 15"), (3, 5, "5"), (7, 4, "4 or 8")],
)
def test_partition_rejects_unequal_slices_and_says_what_would_fit(in_features, out_features, fitting):
    with pytest.raises(ShapeError, match=f"{fitting} inputs would fit"):
        Partition().fan_in(in_features, out_features)


# ----------------------------------------------------------------------------------------------------------- index


@pytest.mark.parametrize(
    ("wiring", "in_features", "neurons"),
    [
        (Partition(), 12, [[[0, 1], [2, 3]], [4, 5, 6], [[7, 8, 9], [10, 11]]]),
        (Shared(), 5, [[[0, 1], [2, 3]], [0, 1, 2], [[0, 1, 2], [3, 4]]]),
    ],
)
def test_unequal_trees_read_their_inputs_in_order(wiring, in_features, neurons):
    assert wired(UNEQUAL, wiring, in_features) == neurons


@given(unwired_forests)
def test_partition_gives_neuron_n_the_nth_slice_and_every_input_one_reader(forest):
    start = 0
    for tree, before in zip(wired(forest, Partition(), forest.in_features), as_lists(forest), strict=True):
        inputs = flat(tree)
        assert sorted(inputs) == list(range(start, start + len(flat(before))))
        start += len(inputs)
    assert start == forest.in_features


@given(unwired_forests)
def test_shared_starts_every_neuron_at_the_first_input(forest):
    most = max(len(flat(tree)) for tree in as_lists(forest))
    for tree in wired(forest, Shared(), most):
        assert sorted(flat(tree)) == list(range(len(flat(tree))))


# --------------------------------------------------------------------------------------------------------- objects


@pytest.mark.parametrize(
    ("value", "word"),
    [("shard", "did you mean 'shared'"), ("xyz", "'xyz'"), (None, "None"), (Shared, "Shared"), ("custom", "inputs")],
)
def test_unknown_wirings_are_rejected_with_a_near_match(value, word):
    with pytest.raises(OptionError, match=word):
        resolve_wiring(value)
