"""Where trees stand: the data behind `plot_tree`, against walks through the raw edge list."""

import numpy as np
import pytest
from forests import NAMED, edges_of, forests
from hypothesis import given
from hypothesis import strategies as st

from dendritree.plot.tree_layout import MOST_LAYERED, lay_out
from dendritree.tree import Forest


def nodes_below(forest, root):
    """A node and all dendrites that it hears from."""
    rows = edges_of(forest, root)
    return [
        root,
        *(n for row in rows if row >= forest.in_features for n in nodes_below(forest, row - forest.in_features)),
    ]


@given(forests(), st.sampled_from(["layered", "radial"]), st.data())
def test_every_edge_stands_between_what_it_reads_and_its_dendrite(forest, form, data):
    neuron = data.draw(st.integers(0, forest.neurons - 1))
    tree = lay_out(forest, neuron, form)
    own = nodes_below(forest, int(forest.roots[neuron]))
    assert sorted(tree.nodes) == sorted(own)
    assert tree.nodes[0] == forest.roots[neuron]
    at = {int(node): place for node, place in zip(tree.nodes, tree.places, strict=True)}
    assert sorted(tree.edges) == sorted(e for n in own for e in range(forest.offsets[n], forest.offsets[n + 1]))
    for edge, start, end, reads in zip(tree.edges, tree.starts, tree.ends, tree.reads, strict=True):
        row = int(forest.source[edge])
        np.testing.assert_array_equal(end, at[int(forest.node_of_edge[edge])])
        if row >= forest.in_features:
            assert reads == -1
            np.testing.assert_array_equal(start, at[row - forest.in_features])
        else:
            assert reads == row
    # No two things in one place, nothing outside
    everything = np.concatenate([tree.places, tree.starts[tree.is_synapse]])
    assert len(np.unique(everything.round(9), axis=0)) == len(everything)
    if form == "radial":
        np.testing.assert_allclose(np.hypot(*tree.starts.T), tree.depths / tree.depth, atol=1e-12)
    else:
        np.testing.assert_allclose(tree.starts[:, 0], 1 - tree.depths / tree.depth, atol=1e-12)
        assert everything.min() >= 0
        assert everything.max() <= 1


@pytest.mark.parametrize("name", NAMED)
def test_edges_of_a_layered_tree_never_cross(name):
    for neuron in range(NAMED[name].neurons):
        tree = lay_out(NAMED[name], neuron, "layered")
        for depth in range(1, tree.depth + 1):
            at = np.flatnonzero(tree.depths == depth)
            order = at[np.argsort(tree.starts[at, 1])]
            assert (np.diff(tree.ends[order, 1]) >= -1e-12).all()


def test_large_trees_are_radial():
    assert lay_out(Forest.grow(2, fan_in=MOST_LAYERED, ragged=True)).form == "layered"
    assert lay_out(Forest.grow(2, fan_in=MOST_LAYERED + 1, ragged=True)).form == "radial"
