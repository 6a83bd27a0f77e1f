"""Morton: every pixel once, in an order defined here by nested loops."""

import pytest
from forests import nested_lists, rank_in_neuron, several
from hypothesis import example, given
from hypothesis import strategies as st
from wiring_cases import by_neuron

from dendritree import DendriticLayer
from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest
from dendritree.wiring import Local, Morton, Shared, with_image

shapes = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))

# ----------------------------------------------------------------------------------------- the orders, by nested loops


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


@given(shapes)
@example((1, 28, 28))
@example((16, 4, 4))
def test_the_order_is_that_of_nested_loops(shape):
    assert order_of(Morton(shape), shape) == numbers(morton(*shape), shape)


@given(nested_lists, st.integers(1, 3))
def test_every_neuron_reads_in_the_same_order_whatever_its_tree(tree, neurons):
    forest = several(tree, neurons)
    inputs = forest.synapses // neurons
    order = order_of(Morton((1, 1, inputs)), (1, 1, inputs))
    index = Morton((1, 1, inputs)).index(forest, inputs).tolist()
    assert index == [order[rank] for rank in rank_in_neuron(forest)]
    assert all(sorted(read) == list(range(inputs)) for read in by_neuron(forest.wired(index, inputs)))


# ------------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("kind", [Morton, Local])
def test_two_sizes_are_one_channel_and_lists_are_shapes(kind):
    assert kind(image_shape=[2, 3]) == kind(image_shape=(1, 2, 3))
    assert hash(kind(image_shape=[2, 3])) == hash(kind(image_shape=(1, 2, 3)))


def test_without_a_shape_the_image_is_square():
    assert order_of(Morton(), (1, 3, 3)) == order_of(Morton((1, 3, 3)), (1, 3, 3))


# --------------------------------------------------------------------------------------------------------- with_image


@pytest.mark.parametrize("name", ["morton", "local"])
def test_wirings_for_images_are_told_the_image(name):
    assert with_image(name, (2, 3, 4)).image_shape == (2, 3, 4)


def test_other_options_and_another_image_stay():
    assert with_image(Local(window=3, seed=5), (2, 3, 4)) == Local(window=3, seed=5, image_shape=(2, 3, 4))
    assert with_image(Morton((4, 3, 2)), (2, 3, 4)) == Morton((4, 3, 2))
    assert with_image("shared", (2, 3, 4)) == Shared()


@pytest.mark.parametrize("kind", [Morton, Local])
@pytest.mark.parametrize("shape", [(4,), (1, 2, 3, 4), 16, (4, 0)], ids=str)
def test_bad_shapes_are_rejected(kind, shape):
    with pytest.raises(OptionError, match="image_shape"):
        kind(image_shape=shape)


@pytest.mark.parametrize("kind", [Morton, Local])
def test_images_that_do_not_hold_all_inputs_are_rejected(kind):
    with pytest.raises(ShapeError, match="784 or 841 would fit"):
        DendriticLayer(785, 2, wiring=kind())
    with pytest.raises(ShapeError, match="60 pixels for 784"):
        DendriticLayer(784, 2, wiring=kind(image_shape=(3, 4, 5)))
