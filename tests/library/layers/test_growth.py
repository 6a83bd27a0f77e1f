"""The trees a layer grows from fan_in and branching, against trees written in plain Python."""

import math

import pytest
from forests import as_lists, flat
from hypothesis import given
from hypothesis import strategies as st
from wiring_cases import nested_of

from dendritree import DendriticLayer
from dendritree import wiring as wirings
from dendritree.errors import DendritreeError

# ------------------------------------------------------------------------------------------------ trees in plain Python


def grouped(children, most):
    """Children under as few parents as can be, of at most `most` each, as equal as can be, larger ones first."""
    parents = -(-len(children) // most)
    small, larger = divmod(len(children), parents)
    sizes = [small + 1] * larger + [small] * (parents - larger)
    return [[children.pop(0) for _ in range(size)] for size in sizes]


def tree_by_levels(fan_in, levels):
    nodes = ["synapse"] * fan_in
    for most in levels:
        nodes = grouped(nodes, most)
    (root,) = nodes
    return root


def tree_by_number(fan_in, branching):
    nodes = grouped(["synapse"] * fan_in, branching)
    while len(nodes) > 1:
        nodes = grouped(nodes, branching)
    return nodes[0]


def written_out(nested):
    """A nested tree with every synapse on its own."""
    children = []
    for child in nested:
        children += [written_out(child)] if isinstance(child, list) else ["synapse"] * child
    return children


def shape(tree):
    """A neuron of `as_lists` without its wiring."""
    return [shape(child) if isinstance(child, list) else "synapse" for child in tree]


def shapes(**options):
    return [shape(tree) for tree in as_lists(DendriticLayer(**{"wiring": "random", **options}).forest)]


@given(st.integers(1, 50), st.integers(1, 4), st.integers(1, 60), st.integers(2, 9))
def test_one_number_for_all_levels(inputs, neurons, fan_in, branching):
    actual = shapes(in_features=inputs, out_features=neurons, fan_in=fan_in, branching=branching)
    assert actual == [tree_by_number(fan_in, branching)] * neurons


@given(st.integers(1, 50), st.integers(1, 4), st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_one_number_a_level_leaf_level_first(inputs, neurons, branching, data):
    most = math.prod(branching)
    fan_in = data.draw(st.none() | st.integers(1, most))
    actual = shapes(in_features=inputs, out_features=neurons, fan_in=fan_in, branching=branching)
    assert actual == [tree_by_levels(fan_in or most, branching)] * neurons


@given(st.integers(1, 50), st.integers(1, 4), st.integers(1, 200))
def test_auto_is_two_levels_near_the_square_root(inputs, neurons, fan_in):
    for tree in shapes(in_features=inputs, out_features=neurons, fan_in=fan_in, branching="auto"):
        assert len(flat(tree)) == fan_in
        if fan_in < 4:
            assert tree == ["synapse"] * fan_in
            continue
        root = math.sqrt(fan_in)
        sizes = [len(dendrite) for dendrite in tree]
        assert all(dendrite == ["synapse"] * len(dendrite) for dendrite in tree)
        assert root - 1 <= len(tree) <= root
        assert root - 1 <= min(sizes) <= max(sizes) <= root + 3
        assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 30), st.integers(1, 3), st.integers(1, 12).flatmap(nested_of))
def test_nested_children_are_the_tree(inputs, neurons, tree):
    assert shapes(in_features=inputs, out_features=neurons, branching=tree) == [written_out(tree)] * neurons


# --------------------------------------------------------------------------------------------------------------- repr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fan_in": 0}, "fan_in"),
        ({"fan_in": "16"}, "fan_in"),
        ({"fan_in": 60, "branching": [25, 2]}, "at most 50"),
        ({"fan_in": 6, "branching": [3, [2]]}, "5 synapses"),
        ({"branching": [3, [2]], "wiring": "shared"}, "5 synapses"),
        ({"branching": [3, [2]], "depth": 7}, "depth"),
        ({"fan_in": 7, "wiring": "partition"}, "fan_in must be 8"),
        ({"fan_in": 16, "depth": 3}, "has depth 2"),
        ({"branching": "atuo"}, "'auto'"),
        ({"branching": [2, "4"]}, "branching"),
        ({"branching": [2, []]}, "dendrite"),
        ({"branching": [0, [2]]}, "dendrite"),
        ({"branching": 2, "depth": 40}, "fewer than"),
    ],
)
def test_trees_that_cannot_be_grown_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 16, "out_features": 2, "branching": 4, "wiring": "random", **options})


@pytest.mark.parametrize(
    "options",
    [
        {"branching": 4, "fan_in": 16},
        {"branching": [5, 2]},
        {"branching": [3, [2], [2, [4]]]},
        {"branching": "auto", "fan_in": 9},
        {"branching": 4, "fan_in": 10},
        {"branching": 4, "fan_in": 16, "repeats": 2},
        {"branching": 3, "ragged": True, "wiring": "shared"},
    ],
)
def test_the_repr_is_a_call_that_grows_the_same_trees(options):
    layer = DendriticLayer(16, 2, **{"wiring": "random", **options})
    call, *_ = layer.extra_repr().split(";")
    again = eval(f"DendriticLayer({call})", vars(wirings) | {"DendriticLayer": DendriticLayer})
    assert [shape(tree) for tree in as_lists(again.forest)] == [shape(tree) for tree in as_lists(layer.forest)]
