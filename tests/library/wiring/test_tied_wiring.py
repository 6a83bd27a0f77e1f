"""Tied wiring: copies of one branch, their pixels, and what a forest may tie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import ShapeError
from dendritree.tree import Forest
from dendritree.wiring import Tied


@given(
    neurons=st.integers(1, 4),
    synapses=st.integers(2, 12),
    copies=st.integers(2, 7),
    window=st.integers(1, 4),
    stride=st.integers(1, 3),
    channels=st.integers(1, 3),
    size=st.tuples(st.integers(7, 12), st.integers(7, 12)),
    seed=st.integers(0, 99),
)
def test_copies_read_the_same_pixels_of_windows_one_stride_apart(
    neurons, synapses, copies, window, stride, channels, size, seed
):
    forest = Forest.grow([synapses, copies], neurons=neurons)
    height, width = size
    wiring = Tied(window, stride, (channels, height, width), seed)
    attached = wiring.attach(forest, channels * height * width)
    channel, pixel = np.divmod(attached.inputs.reshape(neurons, copies, synapses), height * width)
    y, x = np.divmod(pixel, width)
    windows = attached.windows[: neurons * copies].reshape(neurons, copies, 4)
    assert (windows[..., 2:] == [window, window]).all()
    for within, corner, side in ((y, windows[..., :1], height), (x, windows[..., 1:2], width)):
        assert ((within >= corner) & (within < corner + window) & (corner + window <= side)).all()
        assert (within - corner == (within - corner)[:, :1]).all()  # the same in every copy
    assert (channel == channel[:, :1]).all()
    columns = int(np.ceil(np.sqrt(copies)))
    rank = np.arange(copies)
    steps = windows[..., :2] - windows[:, :1, :2]
    rows_fit = (height - window) // max(1, -(-copies // columns) - 1)
    columns_fit = (width - window) // max(1, columns - 1)
    assert (steps[..., 0] == rank // columns * min(stride, rows_fit)).all()
    assert (steps[..., 1] == rank % columns * min(stride, columns_fit)).all()
    assert attached.template.tolist() == [
        *np.repeat(np.arange(neurons) * copies, copies),
        *range(neurons * copies, neurons * (copies + 1)),
    ]


@given(
    groups=st.integers(1, 3),
    missing=st.integers(0, 3),
    shared_by=st.sampled_from([2, 4, 6, 9]),
    branching=st.sampled_from([(2, 2), (4, 4), (2, 2, 3)]),
    size=st.tuples(st.integers(10, 14), st.integers(10, 20)),
    seed=st.integers(0, 99),
)
def test_neurons_that_share_a_tree_read_the_same_pixels_elsewhere(groups, missing, shared_by, branching, size, seed):
    neurons = max(1, groups * shared_by - missing)  # the last group may be smaller
    forest = Forest.grow(list(branching), neurons=neurons)
    wiring = Tied(3, 2, (2, *size), seed, shared_by=shared_by)
    attached = wiring.attach(forest, 2 * size[0] * size[1])
    tied = forest.tied(attached.template)
    alone = Forest.grow(list(branching)).tied(Tied(3, 2, seed=0).attach(Forest.grow(list(branching)), 400).template)
    assert tied.weights == -(-neurons // shared_by) * alone.weights
    assert tied.biases == -(-neurons // shared_by) * alone.biases
    assert (attached.template[forest.roots] == forest.roots[np.arange(neurons) // shared_by * shared_by]).all()
    of_neuron = attached.inputs.reshape(neurons, -1)
    for group in range(0, neurons, shared_by):
        own = of_neuron[group : group + shared_by]
        assert (own - own[:, :1] == own[0] - own[0, 0]).all()  # the whole tree, moved
        assert len(set(own[:, 0])) == len(own)  # each neuron at a place of its own
    windows = attached.windows[attached.windows[:, 2] > 0]
    for axis in (0, 1):  # from edge to edge, unless all lie in one row or column, which is in the middle
        corners = windows.reshape(neurons, -1, 4)[:shared_by, :, axis]
        if neurons >= shared_by and len(set(corners[:, 0])) > 1:
            assert (corners.min(), corners.max() + 3) == (0, size[axis])
        elif neurons >= shared_by:
            assert abs(corners.min() - (size[axis] - 3 - corners.max())) <= 1


def test_neurons_that_share_a_tree_lie_in_a_grid_of_the_shape_of_the_image():
    attached = Tied(3, 1, (1, 9, 18), seed=0, shared_by=8).attach(Forest.grow([2, 4], neurons=8), 162)
    corners = attached.windows[:32:4, :2]  # of the first window of each
    assert corners.tolist() == [[top, left] for top in (0, 5) for left in (0, 5, 9, 14)]


def test_an_image_must_have_room_for_the_neurons_that_share_a_tree():
    with pytest.raises(ShapeError, match="at most 3 rows and 3 columns"):
        Tied(2, 2, shared_by=16).attach(Forest.grow([2, 4], neurons=16), 36)
    with pytest.raises(ShapeError, match="got 5"):
        Tied(2, 2, shared_by=5).attach(Forest.grow([2, 4], neurons=16), 36)


def test_branches_of_any_depth_are_copies():
    attached = Tied(4, 2, seed=3).attach(Forest.grow([2, 3, 2]), 81)
    assert attached.template.tolist() == [0, 1, 2, 0, 1, 2, 6, 6, 8]
    first, second = attached.inputs.reshape(2, 6)
    assert len(set(second - first)) == 1


def test_places_are_used_about_equally_often():
    attached = Tied(2, 2, seed=0).attach(Forest.grow([2, 4], neurons=90), 64)
    corners = attached.windows[: 4 * 90 : 4, :2]
    counts = np.unique(corners, axis=0, return_counts=True)[1]
    assert len(counts) == 25
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize("tree", [[4, [2]], [[2], [3]], [[2, [2]], [[2], 2, 2]], [5]])
def test_branches_must_be_equal_and_roots_without_synapses(tree):
    with pytest.raises(ShapeError, match="equal branches"):
        Tied().attach(Forest.nested(tree), 64)


def test_an_image_must_have_room_for_the_windows():
    with pytest.raises(ShapeError, match=r"room for 9 windows of 4 x 4.*image of 5 x 5"):
        Tied(4, 1).attach(Forest.grow([2, 9]), 25)


# ------------------------------------------------------------------------------------------------------ tied forests


def test_a_tied_forest_counts_shared_weights_once():
    forest = Forest.grow([8, 2], neurons=3).tied([0, 0, 2, 2, 4, 4, 6, 7, 8])
    assert (forest.edges, forest.weights, forest.nodes, forest.biases, forest.parameters()) == (54, 30, 9, 6, 36)
    assert forest.parameters(bias=False) == 30
    assert forest.weight_of_edge[:16].tolist() == [*range(8), *range(8)]
    assert forest.bias_of_node.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 5]


def test_ties_of_none_are_the_forest_without():
    forest = Forest.grow(2, fan_in=4)
    assert forest.tied([0, 1, 2]) == forest
    assert forest.tied([0, 1, 2]).template is None
    assert forest.tied([0, 0, 2]).tied(None) == forest
    assert forest.tied([0, 0, 2]) != forest
    assert hash(forest.tied([0, 0, 2])) != hash(forest)
    assert forest.difference(forest.tied([0, 0, 2])) == "weights 6 against 4"


@pytest.mark.parametrize(
    ("template", "rule"),
    [([0, 0], "itself or an earlier one"), ([1, 1, 2], "earlier"), ([0, 0, 1], "earlier"), ([0, -1, 2], "earlier")],
)
def test_a_template_is_an_earlier_node(template, rule):
    with pytest.raises(ShapeError, match=rule):
        Forest.grow(2, fan_in=4).tied(template)


def test_a_template_has_as_many_children():
    with pytest.raises(ShapeError, match="node 1 has 2, node 0 has 3"):
        Forest.grow(3, fan_in=5, ragged=True).tied([0, 0, 2])


def test_joined_forests_keep_their_ties():
    one = Forest.grow([3, 2]).tied([0, 0, 2])
    both = Forest.join([one, Forest.grow([3, 2]), one])
    assert both.template.tolist() == [0, 0, 2, 3, 4, 4, 6, 7, 8]


def test_a_part_keeps_ties_and_must_keep_the_same_edges():
    forest = Forest.grow([3, 3]).tied([0, 0, 0, 3])
    nodes, edges = np.array([False, True, True, True]), np.ones(12, dtype=bool)
    edges[[0, 1, 2, 3, 6, 9]] = False  # a copy, and the first synapse of the others
    part = forest.part(nodes, edges)
    assert (part.template.tolist(), part.weights) == ([0, 0, 2], 4)
    edges[3] = True
    with pytest.raises(ShapeError, match="keep the same edges"):
        forest.part(nodes, edges)
