"""Forest as a structure: what always holds, nested, join and wired."""

import dataclasses

import numpy as np
import pytest
from forests import (
    as_lists,
    edges_of,
    flat,
    forests,
    longest_path,
    nested_lists,
    wired_forests,
)
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest

# -------------------------------------------------------------------------------------------------------- invariants


@given(forests())
def test_children_come_before_their_node_and_every_node_has_one_reader(forest):
    read = [0] * forest.nodes
    for node in range(forest.nodes):
        rows = edges_of(forest, node)
        assert rows
        for row in rows:
            assert 0 <= row < forest.in_features + node
            if row >= forest.in_features:
                read[row - forest.in_features] += 1
    for root in forest.roots:
        read[root] += 1
    assert read == [1] * forest.nodes


@given(forests())
def test_levels_cover_all_nodes_in_order_and_no_level_reads_itself(forest):
    assert [node for level in forest.levels for node in range(level.start, level.stop)] == list(range(forest.nodes))
    for level in forest.levels:
        for node in range(level.start, level.stop):
            assert max(edges_of(forest, node)) < forest.in_features + level.start


@given(forests())
def test_structure_arrays_agree_with_a_walk_over_the_edges(forest):
    reader, edge = {}, 0
    synapses = []
    for node in range(forest.nodes):
        assert forest.fan_ins[node] == len(edges_of(forest, node))
        for row in edges_of(forest, node):
            assert forest.node_of_edge[edge] == node
            if row < forest.in_features:
                synapses.append((edge, row, node))
            else:
                reader[row - forest.in_features] = node
            edge += 1
    neuron = {}
    for node in reversed(range(forest.nodes)):
        neuron[node] = neuron[reader[node]] if node in reader else forest.roots.tolist().index(node)
    assert forest.neuron_of_node.tolist() == [neuron[node] for node in range(forest.nodes)]
    assert forest.synapses == len(synapses)
    assert forest.synapse_edges.tolist() == [edge for edge, _, _ in synapses]
    assert forest.synapse_inputs.tolist() == [row for _, row, _ in synapses]
    assert forest.neuron_of_synapse.tolist() == [neuron[node] for _, _, node in synapses]
    assert forest.fan_in_of_neuron.tolist() == [len(flat(tree)) for tree in as_lists(forest)]


@given(forests())
def test_depth_is_the_longest_path_from_a_leaf_to_its_root(forest):
    assert forest.depth == max(longest_path(tree) for tree in as_lists(forest))
    heights = [0] * forest.in_features  # of every row: inputs, then nodes
    for node in range(forest.nodes):
        heights.append(1 + max(heights[row] for row in edges_of(forest, node)))
    assert forest.height_of_node.tolist() == heights[forest.in_features :]


@given(wired_forests())
def test_built_forests_have_one_level_per_height(forest):
    assert len(forest.levels) == forest.depth
    assert sorted(forest.height_of_node) == forest.height_of_node.tolist()


def test_arrays_are_copied_in_and_cannot_be_changed():
    source = np.arange(2, dtype=np.int32)
    forest = Forest(2, source, np.array([0, 2], dtype=np.int32), np.array([0], dtype=np.int32))
    source[0] = 1
    assert forest.source.tolist() == [0, 1]
    for array in (forest.source, forest.offsets, forest.roots):
        assert array.dtype == np.int32
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        forest.in_features = 3


# ----------------------------------------------------------------------------------------------------- nested, join


def shape(tree):
    """A neuron of `as_lists` without its wiring: 0 for every synapse."""
    return [shape(child) if isinstance(child, list) else 0 for child in tree]


def spelled_out(nested):
    """What a tree in the notation of `Forest.nested` means: 0 for every synapse."""
    return [
        item for child in nested for item in ([spelled_out(child)] if isinstance(child, list | tuple) else [0] * child)
    ]


@given(nested_lists)
def test_nested_builds_the_tree_that_is_written(nested):
    forest = Forest.nested(nested)
    (tree,) = as_lists(forest)
    assert shape(tree) == spelled_out(nested)
    assert sorted(flat(tree)) == list(range(forest.in_features))


def unwired(forest):
    return forest.wired(np.arange(forest.synapses), forest.synapses)


@given(st.lists(forests().map(unwired), min_size=1, max_size=4))
def test_join_keeps_every_tree_in_order_and_gives_every_synapse_its_own_input(parts):
    joined = Forest.join(parts)
    assert [shape(tree) for tree in as_lists(joined)] == [shape(tree) for part in parts for tree in as_lists(part)]
    assert joined.in_features == sum(part.in_features for part in parts)
    assert joined.synapse_inputs.tolist() == list(range(joined.in_features))
    assert joined.parameters() == sum(part.parameters() for part in parts)


def test_join_of_equal_trees_is_what_grow_gives():
    tree = Forest.grow(3, fan_in=10, ragged=True)
    assert Forest.join([tree, tree, tree]) == Forest.grow(3, fan_in=10, neurons=3, ragged=True)
    assert Forest.join([tree]) == tree


# ------------------------------------------------------------------------------------------------------------ wired


@given(forests(), st.integers(1, 9), st.integers(0, 1000))
def test_wired_gives_the_synapses_their_inputs_in_edge_order_and_keeps_the_trees(forest, in_features, seed):
    index = np.random.default_rng(seed).integers(0, in_features, forest.synapses)
    wired = forest.wired(index, in_features)
    assert wired.in_features == in_features
    assert [shape(tree) for tree in as_lists(wired)] == [shape(tree) for tree in as_lists(forest)]
    rows = [row for node in range(wired.nodes) for row in edges_of(wired, node)]
    assert [row for row in rows if row < in_features] == index.tolist()
    assert wired.wired(forest.synapse_inputs, forest.in_features) == forest


# --------------------------------------------------------------------------------------------------------- rejected


@pytest.mark.parametrize("tree", [5, [], [2, []], "ab", [2, "3"], None, [2, [0]], [2, [2.5]], [2, [True]]], ids=str)
def test_nested_rejects_anything_that_is_not_a_dendrite(tree):
    with pytest.raises(OptionError, match="dendrite"):
        Forest.nested(tree)


@pytest.mark.parametrize(
    "forests", [[], [Forest.nested([2]), Forest.nested([2]).wired([1, 0], 2)]], ids=["none", "wired"]
)
def test_join_needs_unwired_forests(forests):
    with pytest.raises(OptionError, match="join"):
        Forest.join(forests)


@pytest.mark.parametrize(
    ("index", "in_features", "message"),
    [
        ([0, 1, 2], 4, "4 synapses"),
        ([0.0, 1.0, 2.0, 3.0], 4, "float64"),
        ([0, 1, 2, 4], 4, "0 ... 4"),
        ([0, -1, 2, 3], 4, "-1 ... 3"),
        ([0, 1, 2, 3], 0, "in_features"),
        ([0, 1, 2, 3], 2**31 - 1, "below"),
    ],
)
def test_wired_rejects_anything_that_is_not_a_wiring(index, in_features, message):
    with pytest.raises((OptionError, ShapeError), match=message):
        Forest.grow(2, fan_in=4).wired(index, in_features)
