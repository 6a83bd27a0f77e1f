"""The trees a layer grows from fan_in and branching, against trees written in plain Python."""

import contextlib
import math

import pytest
from dendritree.tree.levels import auto_branching, check_shape, is_nested
from forests import as_lists, flat
from hypothesis import given
from hypothesis import strategies as st
from wiring_cases import nested_of

from dendritree import DendriticLayer, budget
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
    found = shapes(in_features=inputs, out_features=neurons, fan_in=fan_in, branching=branching)
    assert found == [tree_by_number(fan_in, branching)] * neurons


@given(st.integers(1, 50), st.integers(1, 4), st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_one_number_a_level_leaf_level_first(inputs, neurons, branching, data):
    most = math.prod(branching)
    fan_in = data.draw(st.none() | st.integers(1, most))
    found = shapes(in_features=inputs, out_features=neurons, fan_in=fan_in, branching=branching)
    assert found == [tree_by_levels(fan_in or most, branching)] * neurons


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


@pytest.mark.parametrize("wiring", ["random", "strided", "local"])
def test_the_examples_of_the_issue(wiring):
    layer = DendriticLayer(784, 256, fan_in=16, branching=4, wiring=wiring)
    assert budget.count(layer).total == 256 * (16 + 4 + 5)
    layer = DendriticLayer(784, 10, branching=[25, 2], wiring=wiring)
    assert [[len(dendrite) for dendrite in tree] for tree in as_lists(layer.forest)] == [[25, 25]] * 10


def test_nested_trees_for_wirings_that_read_all_inputs():
    for wiring in ("shared", "columns"):
        assert (
            shapes(in_features=9, out_features=2, branching=[2, [3, [4]]], wiring=wiring)
            == [written_out([2, [3, [4]]])] * 2
        )
    assert as_lists(DendriticLayer(6, 2, branching=[[2], 1], wiring="partition").forest) == [[[0, 1], 2], [[3, 4], 5]]


# ------------------------------------------------------------------------------------------------------------- levels


@pytest.mark.parametrize(
    ("fan_in", "levels"),
    [(1, (2,)), (2, (2,)), (3, (3,)), (4, (2, 2)), (5, (3, 2)), (16, (4, 4)), (50, (8, 7)), (784, (28, 28))],
)
def test_auto_branching(fan_in, levels):
    assert auto_branching(fan_in) == levels


@pytest.mark.parametrize(
    ("branching", "nested"),
    [
        *[(other, False) for other in (4, "auto", [4, 4], [], [4, "4"], None, b"44")],
        *[(tree, True) for tree in ([[4]], [4, [4]], (4, (2, 2)), [4, []])],
    ],
)
def test_is_nested(branching, nested):
    assert is_nested(branching) is nested


def test_check_shape_returns_what_a_layer_takes():
    assert [check_shape(b) for b in (4, [4, 2], "auto", [4, [2]])] == [4, (4, 2), "auto", [4, [2]]]


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fan_in": 0}, r"^fan_in must be an integer of at least 1: got 0$"),
        ({"fan_in": 1.5}, r"^fan_in must be an integer of at least 1: got 1\.5$"),
        ({"fan_in": True}, r"^fan_in must be an integer of at least 1: got True$"),
        ({"fan_in": "16"}, r"^fan_in must be an integer of at least 1: got '16'$"),
        ({"fan_in": 60, "branching": [25, 2]}, r"^fan_in must be at most 50 for branching \[25, 2\]: got 60$"),
        ({"fan_in": 6, "branching": [3, [2]]}, r"^fan_in must be the 5 synapses of the nested tree: got 6$"),
        ({"branching": [3, [2]], "wiring": "shared"}, r"^fan_in must be the 5 synapses of the nested tree: got 16$"),
        ({"fan_in": 7, "wiring": "partition"}, r"^fan_in must be 8 for wiring 'partition' .*: got 7; wirings"),
        ({"fan_in": 16, "depth": 3}, r"^depth must be that of .*: got depth 3, but fan_in 16 .* has depth 2$"),
        (
            {"branching": "auto", "depth": 3},
            r"^depth must be left out for branching 'auto', which grows 2 levels here: got 3",
        ),
        ({"branching": "atuo"}, r"^branching must be one of 'auto': got 'atuo'; did you mean 'auto'\?$"),
        ({"branching": None}, r"^branching must be an integer of at least 2: got None$"),
        ({"branching": [2, "4"]}, r"^branching of a level must be an integer of at least 2: got '4'$"),
        ({"branching": [2, []]}, r"^a dendrite must be a non-empty list of synapse counts and dendrites: got \[\]$"),
        ({"branching": [0, [2]]}, r"^synapses of a dendrite must be an integer of at least 1: got 0$"),
        ({"branching": [2.0, [2]]}, r"^synapses of a dendrite must be an integer of at least 1: got 2\.0$"),
        ({"branching": [2, ["ab"]]}, r"^a dendrite must be a non-empty list .*: got 'ab'$"),
        ({"out_features": None}, r"^out_features is required for wiring 'random': got None$"),
        (
            {"out_features": None, "wiring": "partition", "branching": "auto"},
            r"^out_features must be given for branching 'auto': got None; the number of neurons follows",
        ),
        ({"branching": 2, "depth": 40}, r"^a tree must have fewer than 2\*\*31 synapses: got 2 \*\* 40$"),
    ],
)
def test_trees_that_cannot_be_grown_are_refused(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 16, "out_features": 2, "branching": 4, "wiring": "random", **options})


def test_a_depth_that_is_not_the_nested_trees_is_refused():
    with pytest.raises(DendritreeError, match=r"depth must be .*: got (depth )?7"):
        DendriticLayer(16, 2, branching=[3, [2]], wiring="random", depth=7)


def test_very_deep_trees_grow_or_are_refused_by_a_rule():
    tree = [1]
    for _ in range(2_000):
        tree = [1, tree]
    with contextlib.suppress(DendritreeError):
        assert DendriticLayer(16, 1, branching=tree, wiring="random").depth == 2_001


# --------------------------------------------------------------------------------------------------------------- repr


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
