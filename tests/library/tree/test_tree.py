"""Forest.grow: the sizes of the levels, the counts, and what is rejected."""

import numpy as np
import pytest
from forests import as_lists, flat, grown_trees, longest_path
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest

# ------------------------------------------------------------------------------------------------------------- sizes


@given(branching=st.integers(2, 9), fan_in=st.integers(1, 200))
def test_a_ragged_tree_keeps_the_branching_at_every_node(branching, fan_in):
    forest = Forest.grow(branching, fan_in=fan_in, ragged=True)
    fan_ins = np.diff(forest.offsets)
    assert fan_ins.max() <= branching
    assert flat(as_lists(forest)[0]) == list(range(fan_in))
    expected, children = [], fan_in  # the rule of the specification, by hand
    while children > 1 or not expected:
        children = (children + branching - 1) // branching
        expected.append(children)
    assert [level.stop - level.start for level in forest.levels] == expected
    for level in forest.levels:
        assert sorted(fan_ins[level], reverse=True) == fan_ins[level].tolist()
        assert fan_ins[level].max() - fan_ins[level].min() <= 1


# ------------------------------------------------------------------------------------------------------------ counts


@pytest.mark.parametrize(
    ("arguments", "synapses", "depth", "edges", "nodes", "parameters"),
    [
        ({"branching": 6, "depth": 3}, 216, 3, 258, 43, 301),
        ({"branching": 2, "fan_in": 2**20}, 2**20, 20, 2_097_150, 1_048_575, 3_145_725),
        ({"branching": 2, "fan_in": 784, "ragged": True}, 784, 10, 1570, 787, 2357),
        ({"branching": 2, "fan_in": 1, "ragged": True}, 1, 1, 1, 1, 2),
        ({"branching": [16, 8]}, 128, 2, 136, 9, 145),
        ({"branching": 32, "fan_in": 1024}, 1024, 2, 1056, 33, 1089),
        ({"branching": 2, "fan_in": 1024}, 1024, 10, 2046, 1023, 3069),
        ({"branching": 32, "fan_in": 1024, "neurons": 10}, 10240, 2, 10560, 330, 10890),
    ],
)
def test_counts(arguments, synapses, depth, edges, nodes, parameters):
    forest = Forest.grow(**arguments)
    assert (forest.in_features, forest.synapses, forest.depth) == (synapses, synapses, depth)
    assert (forest.edges, forest.nodes, forest.neurons) == (edges, nodes, arguments.get("neurons", 1))
    assert (forest.parameters(), forest.parameters(bias=False), forest.edges) == (parameters, edges, edges)
    assert (len(forest.source), len(forest.offsets), len(forest.roots)) == (edges, nodes + 1, forest.neurons)


def test_masked_weights_count_rows_that_wait_for_a_later_level():
    # 7 synapses; level 1 has one node of 2, so its matrix is 1 x 7; level 2 is one node reading the 5 others and it.
    assert Forest.nested([5, [2]]).masked_weights == 7 + 6


@given(grown_trees(), st.integers(1, 5))
def test_counts_grow_with_the_number_of_neurons(tree, neurons):
    forest = Forest.join([tree] * neurons)
    assert forest.parameters() == neurons * tree.parameters()
    assert (forest.synapses, forest.depth) == (neurons * tree.synapses, longest_path(as_lists(tree)[0]))
    assert forest.masked_weights == neurons**2 * tree.masked_weights


@pytest.mark.parametrize("value", [0, -4, 4.0, float("nan"), "4", True])
@pytest.mark.parametrize("name", ["fan_in", "depth", "neurons"])
def test_sizes_must_be_positive_integers(name, value):
    with pytest.raises(OptionError, match=name):
        Forest.grow(2, **{"fan_in": 4, name: value})


@pytest.mark.parametrize("value", [1, -2, 2.0, float("nan"), "2", True, None])
def test_branching_must_be_integers_of_at_least_two(value):
    for branching in (value, [2, value]):
        with pytest.raises(OptionError, match=r"branching.* at least 2"):
            Forest.grow(branching, fan_in=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branching": 2}, "fan_in or its depth"),
        ({"branching": []}, "empty"),
        ({"branching": 2, "fan_in": 784}, "512 or 1024 would fit, or ragged=True"),
        ({"branching": 4, "fan_in": 3}, "4 would fit"),
        ({"branching": 32, "fan_in": 1024, "depth": 3}, "has depth 2"),
        ({"branching": [16, 8], "depth": 3}, "number of levels"),
        ({"branching": [16, 8], "fan_in": 100}, "128 .*ragged=True"),
        ({"branching": [16, 8], "fan_in": 129, "ragged": True}, "at most 128"),
        # before anything is allocated:
        ({"branching": 10**6, "depth": 10**6}, r"fewer than 2\*\*31 synapses"),
        ({"branching": [2**16, 2**16]}, r"fewer than 2\*\*31 rows"),
        ({"branching": 2, "fan_in": 2, "neurons": 2**40}, r"fewer than 2\*\*31 rows"),
    ],
)
def test_sizes_that_do_not_fit_are_rejected_with_those_that_would(arguments, message):
    with pytest.raises((OptionError, ShapeError), match=message):
        Forest.grow(**arguments)
