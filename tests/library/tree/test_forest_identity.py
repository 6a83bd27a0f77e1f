"""Forest as a value: equality, the difference of two, its text, and edge lists that are not a forest."""

import copy
import pickle

import numpy as np
import pytest
from forests import forests
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest

# ----------------------------------------------------------------------------------------------- equality, difference


@given(forests())
def test_a_copy_is_equal_and_has_the_same_hash(forest):
    copies = [
        Forest(forest.in_features, forest.source.tolist(), forest.offsets.tolist(), forest.roots.tolist()),
        copy.deepcopy(forest),
        pickle.loads(pickle.dumps(forest)),
    ]
    for other in copies:
        assert other == forest
        assert hash(other) == hash(forest)
        assert forest.difference(other) is None


@given(st.lists(forests(), min_size=2, max_size=2))
def test_forests_are_equal_exactly_if_their_edge_lists_are(pair):
    one, other = pair
    raw = [(f.in_features, f.source.tolist(), f.offsets.tolist(), f.roots.tolist()) for f in pair]
    assert (one == other) is (raw[0] == raw[1])
    assert (one.difference(other) is None) is (raw[0] == raw[1])


GROWN = Forest.grow(2, fan_in=4)  # edges 0 ... 5; node 2 reads nodes 0 and 1


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        (GROWN, GROWN.wired([0, 1, 2, 3], 5), "in_features 4 against 5"),
        (GROWN, Forest.join([Forest.nested([2])] * 2), "neurons 1 against 2"),
        (GROWN, Forest.nested([5]).wired([0, 1, 2, 3, 3], 4), "synapses 4 against 5"),
        (GROWN, Forest.nested([[4]]), "edges 6 against 5"),
        (GROWN, Forest.nested([[3], [1]]), "tree: offsets[1] is 2 against 3"),
        (GROWN, GROWN.wired([0, 1, 3, 3], 4), "wiring: source[2] is 2 against 3"),
        (
            Forest(2, [0, 1], [0, 1, 2], [0, 1]),
            Forest(2, [0, 1], [0, 1, 2], [1, 0]),
            "tree: roots[0] is 0 against 1",
        ),
    ],
)
def test_difference_names_the_first_difference_with_both_values(one, other, difference):
    assert one.difference(other) == difference
    assert one != other


# -------------------------------------------------------------------------------------------------------- describe


@pytest.mark.parametrize(
    ("forest", "text"),
    [
        (Forest.grow([16, 8]), "1 tree of 128 synapses, 8 + 1 dendrites"),
        (Forest.grow(32, fan_in=1024, neurons=10), "10 trees of 1,024 synapses, 32 + 1 dendrites"),
        (Forest.nested([3]), "1 tree of 3 synapses, 1 dendrite"),
        (Forest.nested([1]), "1 tree of 1 synapse, 1 dendrite"),
        (Forest.join([GROWN, Forest.nested([3])]), "2 unequal trees of 7 synapses, 3 + 1 dendrites"),
        (
            Forest.join([Forest.nested([[1], [1], [1]]), Forest.nested([[3]])]),
            "2 unequal trees of 6 synapses, 4 + 2 dendrites",
        ),
    ],
)
def test_describe_counts_synapses_and_dendrites_by_level(forest, text):
    assert forest.describe() == text


NONE = np.array([], dtype=np.int32)


@pytest.mark.parametrize(
    ("in_features", "source", "offsets", "roots", "word"),
    [
        (0, [0], [0, 1], [0], "in_features"),
        (2, NONE, [0], NONE, "offsets"),
        (2, [0, 1], [0, 2, 2], [0, 1], "offsets"),
        (2, [0, -1], [0, 2], [0], "source"),
        (2, [3, 0], [0, 1, 2], [0], "source"),
        (2, [0, 2, 2], [0, 1, 3], [1], "2 child edges"),
        (2, [0, 2], [0, 1, 2], [0, 1], "1 child edges"),
        (2, [0, 1], [0, 2], [0, 0], "root"),
        (2, [0.5, 1.7], [0, 2], [0], "source .* integers"),
        (2, [2**32, 1], [0, 2], [0], "source"),
        (2**31 - 1, [0, 1], [0, 2], [0], "fewer than"),
        (2, [[0], [1]], [0, 1, 2], [0, 1], "1-D"),
    ],
)
def test_edge_lists_that_are_not_a_forest_are_rejected(in_features, source, offsets, roots, word):
    with pytest.raises((OptionError, ShapeError), match=word):
        Forest(in_features, source, offsets, roots)
