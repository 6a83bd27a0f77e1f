"""The layout for the fused kernels: an order that computes, chunks that cover it, slots that never clash."""

import pytest
from forests import NAMED, edges_of, forests, share
from hypothesis import given

from dendritree.ops.program import PLACE, make_program
from dendritree.tree import Forest


class Read:
    """A program's tables by name."""

    def __init__(self, forest):
        program = make_program(forest)
        self.sizes, words = program.sizes, program.tables.numpy()
        rows, chunks = self.sizes.rows_at // 4, self.sizes.chunks_at // 4
        self.places = words[:rows].view(PLACE)
        self.rows = words[rows:chunks]
        self.chunks = words[chunks:].reshape(-1, 2).tolist()
        self.place = {int(node): place for place, node in enumerate(self.places["node"])}


def children(forest, node):
    """Nodes that a node reads."""
    return [row - forest.in_features for row in edges_of(forest, node) if row >= forest.in_features]


WIDE = {
    "64 equal": Forest.grow(2, depth=3, neurons=64),
    "65 equal": Forest.grow(3, depth=2, neurons=65),
    "600 perceptrons": Forest.grow(3, depth=1, neurons=600),
    "100 unequal": Forest.join([Forest.nested([[1 + n % 3], 2, [[1], [n % 5 + 1]]]) for n in range(100)]),
    "dendrites, shared": share(Forest.grow([17, 4], neurons=9)),
    "deep": Forest.grow(2, fan_in=512, neurons=3),
    "segments of several sizes": Forest.join(
        [Forest.nested([[[40], [30]], [[2]] * 9, 3]), Forest.nested([[65], [64]])]
    ),
}
many = pytest.mark.parametrize("forest", [*NAMED.values(), *WIDE.values()], ids=[*NAMED, *WIDE])


def assert_quarters_read_the_same(forest, tables):
    """Places are marked in fours, in a row within a chunk; of each four all read the same inputs, no dendrite."""
    for first, beyond in zip(tables.chunks, tables.chunks[1:], strict=False):
        lines = tables.places[first[0] : beyond[0]]
        place = 0
        while place < len(lines):
            if not lines["is_quarter"][place]:
                place += 1
                continue
            four = lines[place : place + 4]
            assert four["is_quarter"].tolist() == [1] * 4
            reads = [edges_of(forest, node) for node in four["node"].tolist()]
            assert all(row < forest.in_features for row in reads[0])
            assert reads.count(reads[0]) == 4
            place += 4


def assert_sound(forest):
    tables = Read(forest)
    assert_quarters_read_the_same(forest, tables)
    sizes = tables.sizes
    assert (sizes.nodes, sizes.neurons, sizes.edges) == (forest.nodes, forest.neurons, forest.edges)
    assert sorted(tables.place) == list(range(forest.nodes))  # a permutation
    for node, place in tables.place.items():
        rows, line = edges_of(forest, node), tables.places[place]
        assert (line["first"], line["fan_in"]) == (forest.offsets[node], len(rows))
        assert line["root"] == (forest.roots.tolist().index(node) if node in forest.roots else -1)
        is_dendrite = [row >= forest.in_features for row in rows]
        assert line["synapses"] == (is_dendrite.index(True) if any(is_dendrite) else len(rows))
        for edge, row in enumerate(rows, start=line["first"]):
            child = tables.place.get(row - forest.in_features)
            if child is None:
                assert tables.rows[edge] == row
                continue
            below = tables.places[child]
            assert child < place  # children before parents
            assert tables.rows[edge] == -1 - below["slot"]
            assert (below["parent"], below["edge"]) == (place, edge)
            assert below["parent_slot"] == line["slot"]
    assert_chunks(forest, tables)
    assert_slots(forest, tables)


def assert_chunks(forest, tables):
    """They cover all places and neurons, in order, and no tree lies in two."""
    assert tables.chunks[0] == [0, 0]
    assert tables.chunks[-1] == [forest.nodes, forest.neurons]
    assert len(tables.chunks) == tables.sizes.chunks + 1
    steps = list(zip(tables.chunks[:-1], tables.chunks[1:], strict=True))
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in steps)
    assert max(b[1] - a[1] for a, b in steps) == tables.sizes.widest
    for (place, neuron), (last_place, last_neuron) in steps:
        nodes = tables.places[place:last_place]["node"]
        assert set(forest.neuron_of_node[nodes].tolist()) == set(range(neuron, last_neuron))


def assert_slots(forest, tables):
    """Walk forwards and backwards as the kernels do: what stands in a slot is always the value that is looked for."""
    for (begin, _), (end, _) in zip(tables.chunks[:-1], tables.chunks[1:], strict=True):
        lines = tables.places[begin:end]
        values, gradients = {}, {}
        for line in lines:
            node = int(line["node"])
            for child in children(forest, node):
                assert values[tables.places[tables.place[child]]["slot"]] == child
            values[line["slot"]] = node
        for line in reversed(lines):
            node = int(line["node"])
            if line["parent"] >= 0:
                assert gradients[line["parent_slot"]] == tables.places[line["parent"]]["node"]
            if children(forest, node):
                gradients[line["slot"]] = node
        assert 0 <= lines["slot"].min() <= lines["slot"].max() < tables.sizes.slots


@many
def test_named_forests_are_laid_out_soundly(forest):
    assert_sound(forest)


@given(forest=forests())
def test_any_forest_is_laid_out_soundly(forest):
    assert_sound(forest)


@given(forest=forests())
def test_a_program_holds_the_forest_it_was_made_from(forest):
    assert make_program(forest).forest() == forest
