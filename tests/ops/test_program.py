"""The layout for the fused kernels: an order that computes, chunks that cover it, homes that never clash."""

import numpy as np
import pytest
from forests import NAMED, edges_of, forests
from hypothesis import given

from dendritree.ops.program import COLUMNS, make_program
from dendritree.tree import Forest


class Read:
    """A program's tables by name, as its docstring lays them out."""

    def __init__(self, forest):
        program = make_program(forest)
        sizes, words = program.sizes, program.tables.numpy()
        begin = [size // 4 for size in sizes[4:11]] + [len(words)]
        names = ["nodes", "rows", "homes", "kept", "readers", "reader_edges", "reader_places"]
        for name, first, last in zip(names, begin[:-1], begin[1:], strict=True):
            setattr(self, name, words[first:last])
        self.nodes = self.nodes.reshape(-1, COLUMNS)
        self.node_count, self.neuron_count, self.home_count, self.kept_count = sizes[:4]
        self.chunks = sizes[11:]
        self.place = {int(node): place for place, node in enumerate(self.nodes[:, 0])}


def children(forest, node):
    """Nodes that a node reads."""
    return [row - forest.in_features for row in edges_of(forest, node) if row >= forest.in_features]


WIDE = {
    "64 equal": Forest.grow(2, depth=3, neurons=64),
    "65 equal": Forest.grow(3, depth=2, neurons=65),
    "600 perceptrons": Forest.grow(3, depth=1, neurons=600),
    "100 unequal": Forest.join([Forest.nested([[1 + n % 3], 2, [[1], [n % 5 + 1]]]) for n in range(100)]),
}
many = pytest.mark.parametrize("forest", [*NAMED.values(), *WIDE.values()], ids=[*NAMED, *WIDE])


def assert_sound(forest):
    found = Read(forest)
    assert (found.node_count, found.neuron_count) == (forest.nodes, forest.neurons)
    assert sorted(found.place) == list(range(forest.nodes))  # a permutation
    for node, place in found.place.items():
        rows = edges_of(forest, node)
        first, fan_in, neuron = found.nodes[place, [1, 2, 4]]
        assert (first, fan_in) == (forest.offsets[node], len(rows))
        assert neuron == (forest.roots.tolist().index(node) if node in forest.roots else -1)
        dendrites = [row >= forest.in_features for row in rows]
        assert found.nodes[place, 3] == (1 if all(dendrites) else 2 if any(dendrites) else 0)
        for i, row in enumerate(rows):
            child = found.place.get(row - forest.in_features)
            assert child is None or child < place  # children before parents
            mixed = found.nodes[place, 3] == 2
            assert found.rows[first + i] == (row if child is None else -1 - child if mixed else child)
    assert_chunks(forest, found)
    assert_readers(forest, found)
    for homes, count in ((found.homes, found.home_count), (found.kept, found.kept_count)):
        assert_homes(forest, found, homes, count)


def assert_chunks(forest, found):
    """They cover all places, at most 64, and no tree lies in two."""
    assert found.chunks[0] == 0
    assert found.chunks[-1] == forest.nodes
    assert all(a < b for a, b in zip(found.chunks[:-1], found.chunks[1:], strict=True))
    assert len(found.chunks) - 1 <= 64
    chunk = {place: i for i in range(len(found.chunks) - 1) for place in range(*found.chunks[i : i + 2])}
    for node, place in found.place.items():
        assert {chunk[found.place[child]] for child in children(forest, node)} <= {chunk[place]}


def assert_readers(forest, found):
    """Every input finds the synapses that read it, and the places of their nodes."""
    node_of_edge = [node for node in range(forest.nodes) for _ in edges_of(forest, node)]
    for i in range(forest.in_features):
        read = range(found.readers[i], found.readers[i + 1])
        edges = [int(found.reader_edges[r]) for r in read]
        assert edges == [edge for edge, row in enumerate(forest.source.tolist()) if row == i]
        assert [int(found.reader_places[r]) for r in read] == [found.place[node_of_edge[edge]] for edge in edges]


def assert_homes(forest, found, homes, count):
    """Walk backwards as the kernel does: what stands in a home is always the gradient that is looked for.

    Chunks may run at the same time or in any order, so they have no home in common.
    """
    node_at = found.nodes[:, 0].tolist()
    used = []
    for begin, end in zip(found.chunks[:-1], found.chunks[1:], strict=True):
        stands = {}
        for place in reversed(range(begin, end)):
            node = node_at[place]
            if node in forest.roots:
                stands[int(homes[place])] = node  # written in its own turn
            assert stands[int(homes[place])] == node
            for child in children(forest, node):
                home = int(homes[found.place[child]])
                assert home != homes[place]  # the parent's gradient is read until all children have theirs
                stands[home] = child
        if homes is found.kept:  # the gradients of the inputs are gathered from these, when all is done
            for place in range(begin, end):
                node = node_at[place]
                if len(children(forest, node)) < len(edges_of(forest, node)):
                    assert stands[int(homes[place])] == node
        used.append(set(stands))
        assert all(0 <= home < count for home in stands)
    assert sum(map(len, used)) == len(set().union(*used))


@many
def test_named_forests_are_laid_out_soundly(forest):
    assert_sound(forest)


@given(forest=forests())
def test_any_forest_is_laid_out_soundly(forest):
    assert_sound(forest)


@given(forest=forests())
def test_gradients_have_at_most_two_rows_a_node(forest):
    found = Read(forest)
    assert found.home_count <= 2 * forest.nodes
    assert found.kept_count <= 2 * forest.nodes


DEEP = {f"{neurons} b={b}": Forest.grow(b, fan_in=1024, neurons=neurons) for neurons in (1, 10, 256) for b in (2, 4)}


@pytest.mark.parametrize("name", DEEP)
def test_the_gradients_of_deep_trees_need_few_rows(name):
    forest = DEEP[name]
    assert Read(forest).home_count < forest.nodes / 4


@pytest.mark.parametrize(
    "forest",
    [
        *DEEP.values(),
        Forest.grow(32, fan_in=1024),
        Forest.grow(32, fan_in=1024, neurons=10),
        Forest.join([Forest.nested([[2]] * 500), *[Forest.nested([2])] * 63]),  # one wide tree among small ones
    ],
    ids=[*DEEP, "1 b=32", "10 b=32", "one wide among small"],
)
def test_memory_is_at_most_twice_the_node_activations(forest):
    """What the two passes hold beside inputs and outputs: activations, and gradients of nodes."""
    found = Read(forest)
    assert forest.nodes + found.kept_count <= 2 * forest.nodes + found.neuron_count


def test_four_large_neurons_are_two_chunks():
    forest = Forest.grow(2, fan_in=2**16, neurons=4)
    found = Read(forest)
    assert len(found.chunks) == 3
    assert np.array_equal(np.sort(found.nodes[:, 0]), np.arange(forest.nodes))
