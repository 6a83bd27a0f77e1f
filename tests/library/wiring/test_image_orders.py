"""Rows, Columns, Patches, Morton: every pixel once, in an order defined here by nested loops."""

import pytest
from forests import nested_lists, rank_in_neuron, several
from hypothesis import example, given
from hypothesis import strategies as st
from wiring_cases import by_dendrite, by_neuron

from dendritree import DendriticLayer
from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest
from dendritree.wiring import Columns, Local, Morton, Patches, Rows, Shared, with_image

shapes = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))
ORDERS = [Rows, Columns, Patches, Morton]

# ----------------------------------------------------------------------------------------- the orders, by nested loops


def rows(channels, height, width):
    return [(c, y, x) for c in range(channels) for y in range(height) for x in range(width)]


def columns(channels, height, width):
    return [(c, y, x) for c in range(channels) for x in range(width) for y in range(height)]


def patches(channels, height, width, side):
    return [
        (c, y, x)
        for top in range(0, height, side)
        for left in range(0, width, side)
        for c in range(channels)
        for y in range(top, min(top + side, height))
        for x in range(left, min(left + side, width))
    ]


def morton(channels, height, width):
    """Quarters of quarters: upper left, upper right, lower left, lower right."""

    def quarters(top, left, side):
        if top >= height or left >= width:
            return []
        if side == 1:
            return [(c, top, left) for c in range(channels)]
        half = side // 2
        corners = [(top, left), (top, left + half), (top + half, left), (top + half, left + half)]
        return [pixel for corner in corners for pixel in quarters(*corner, half)]

    side = 1
    while side < max(height, width):
        side *= 2
    return quarters(0, 0, side)


def numbers(pixels, shape):
    """Where the pixels are in a flattened image."""
    return [(c * shape[1] + y) * shape[2] + x for c, y, x in pixels]


def order_of(wiring, shape):
    inputs = shape[0] * shape[1] * shape[2]
    return wiring.index(Forest.grow(2, fan_in=inputs, ragged=True), inputs).tolist()


@given(shapes, st.integers(1, 10))
@example((1, 28, 28), 7)
@example((3, 5, 8), 4)
@example((16, 4, 4), 2)
def test_orders_are_those_of_nested_loops(shape, side):
    assert order_of(Rows(shape), shape) == numbers(rows(*shape), shape)
    assert order_of(Columns(shape), shape) == numbers(columns(*shape), shape)
    assert order_of(Patches(shape, side), shape) == numbers(patches(*shape, side), shape)
    assert order_of(Morton(shape), shape) == numbers(morton(*shape), shape)


@given(shapes, st.sampled_from(ORDERS))
def test_orders_are_permutations(shape, kind):
    assert sorted(order_of(kind(shape), shape)) == list(range(shape[0] * shape[1] * shape[2]))


@given(nested_lists, st.integers(1, 3), st.sampled_from(ORDERS))
def test_every_neuron_reads_in_the_same_order_whatever_its_tree(tree, neurons, kind):
    forest = several(tree, neurons)
    inputs = forest.synapses // neurons
    order = order_of(kind((1, 1, inputs)), (1, 1, inputs))
    index = kind((1, 1, inputs)).index(forest, inputs).tolist()
    assert index == [order[rank] for rank in rank_in_neuron(forest)]
    assert all(sorted(read) == list(range(inputs)) for read in by_neuron(forest.wired(index, inputs)))


def test_dendrites_are_rows_columns_and_patches_of_the_image():
    def first_dendrites(wiring):
        layer = DendriticLayer(16, 2, branching=4, wiring=wiring)
        return [neuron[0] for neuron in by_dendrite(layer.forest)]

    assert first_dendrites("rows") == [[0, 1, 2, 3]] * 2
    assert first_dendrites("columns") == [[0, 4, 8, 12]] * 2
    assert first_dendrites(Patches(side=2)) == [[0, 1, 4, 5]] * 2
    assert first_dendrites("morton") == [[0, 1, 4, 5]] * 2


# ------------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("kind", [*ORDERS, Local])
def test_two_sizes_are_one_channel_and_lists_are_shapes(kind):
    assert kind(image_shape=[2, 3]) == kind(image_shape=(1, 2, 3))
    assert hash(kind(image_shape=[2, 3])) == hash(kind(image_shape=(1, 2, 3)))


def test_without_a_shape_the_image_is_square():
    assert order_of(Columns(), (1, 3, 3)) == order_of(Columns((1, 3, 3)), (1, 3, 3))


@pytest.mark.parametrize("kind", [*ORDERS, Local])
@pytest.mark.parametrize(
    ("inputs", "fitting"), [(3, "1 or 4"), (2, "1 or 4"), (785, "784 or 841"), (1023, "961 or 1024")]
)
def test_other_numbers_of_inputs_need_a_shape(kind, inputs, fitting):
    with pytest.raises(ShapeError) as error:
        DendriticLayer(inputs, 2, branching="auto", wiring=kind())
    assert str(error.value) == (
        f"wiring {kind.name!r} takes a square image unless image_shape is given: got {inputs} inputs; "
        f"{fitting} would fit"
    )


@pytest.mark.parametrize("kind", [*ORDERS, Local])
def test_a_shape_must_hold_all_inputs(kind):
    with pytest.raises(ShapeError) as error:
        DendriticLayer(784, 2, branching="auto", wiring=kind(image_shape=(3, 4, 5)))
    assert str(error.value) == "image_shape must hold all inputs: got (3, 4, 5), 60 pixels for 784"


@pytest.mark.parametrize("kind", [*ORDERS, Local])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4,), r"^image_shape must be \(channels, height, width\) or \(height, width\): got \(4,\)$"),
        ((1, 2, 3, 4), r"^image_shape must be .*: got \(1, 2, 3, 4\)$"),
        (16, r"^image_shape must be .*: got 16$"),
        ((4, 0), r"^image_shape must be .*: got "),
        ((4, 4.0), r"^image_shape must be .*: got "),
        ("44", r"^image_shape must be .*: got "),
    ],
)
def test_bad_shapes_are_rejected(kind, shape, message):
    with pytest.raises(OptionError, match=message):
        kind(image_shape=shape)


@pytest.mark.parametrize("side", [0, -1, 2.0, True, "2", None])
def test_bad_sides_of_patches_are_rejected(side):
    with pytest.raises(OptionError) as error:
        Patches(side=side)
    assert str(error.value) == f"side must be an integer of at least 1: got {side!r}"


@pytest.mark.parametrize("shape", [(1, 40_000, 1), (2, 1, 70_000)])
def test_morton_on_very_long_images(shape):
    assert order_of(Morton(shape), shape) == numbers(morton(*shape), shape)


# --------------------------------------------------------------------------------------------------------- with_image


@pytest.mark.parametrize("name", ["rows", "columns", "patches", "morton", "local"])
def test_wirings_for_images_are_told_the_image(name):
    assert with_image(name, (2, 3, 4)).image_shape == (2, 3, 4)


def test_other_options_and_another_image_stay():
    assert with_image(Patches(side=2), (2, 3, 4)) == Patches((2, 3, 4), side=2)
    assert with_image(Local(window=3, seed=5), (2, 3, 4)) == Local(window=3, seed=5, image_shape=(2, 3, 4))
    assert with_image(Rows((4, 3, 2)), (2, 3, 4)) == Rows((4, 3, 2))
    assert with_image("shared", (2, 3, 4)) == Shared()
