"""Wirings: which input each synapse reads, seen neuron by neuron."""

import dataclasses

import numpy as np
import pytest
from forests import as_lists, flat, unwired_forests
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError, ShapeError
from dendritree.tree import Forest
from dendritree.wiring import WIRINGS, Partition, Shared, Wiring, resolve_wiring

UNEQUAL = Forest.join([Forest.grow(2, fan_in=4), Forest.nested([3]), Forest.grow(3, fan_in=5, ragged=True)])


def wired(forest, wiring, in_features):
    return as_lists(forest.wired(wiring.index(forest, in_features), in_features))


# ---------------------------------------------------------------------------------------------------------- fan_in


@pytest.mark.parametrize(
    ("in_features", "out_features", "fan_in"), [(1024, 1, 1024), (10240, 10, 1024), (12, 4, 3), (5, 5, 1)]
)
def test_partition_gives_every_neuron_an_equal_slice(in_features, out_features, fan_in):
    assert Partition().fan_in(in_features, out_features) == fan_in


@pytest.mark.parametrize(("in_features", "out_features"), [(1024, 10), (5, 5), (1, 7)])
def test_shared_gives_every_neuron_all_inputs(in_features, out_features):
    assert Shared().fan_in(in_features, out_features) == in_features


@pytest.mark.parametrize(
    ("in_features", "out_features", "fitting"),
    [(784, 10, "780 or 790"), (11, 5, "10 or 15"), (3, 5, "5"), (7, 4, "4 or 8")],
)
def test_partition_rejects_unequal_slices_and_says_what_would_fit(in_features, out_features, fitting):
    rule = "in_features must be a multiple of out_features for wiring 'partition'"
    message = f"{rule}: got {in_features} and {out_features}; {fitting} inputs would fit"
    with pytest.raises(ShapeError) as error:
        Partition().fan_in(in_features, out_features)
    assert str(error.value) == message


# ----------------------------------------------------------------------------------------------------------- index


@pytest.mark.parametrize(
    ("wiring", "in_features", "neurons"),
    [
        (Partition(), 8, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (Shared(), 4, [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]),
    ],
)
def test_equal_trees_read_their_inputs_in_order(wiring, in_features, neurons):
    assert wired(Forest.grow(2, fan_in=4, neurons=2), wiring, in_features) == neurons


@pytest.mark.parametrize(
    ("wiring", "in_features", "neurons"),
    [
        (Partition(), 10, [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8, 9]]]),
        (Shared(), 5, [[[0, 1, 2], [3, 4]], [[0, 1, 2], [3, 4]]]),
    ],
)
def test_ragged_trees_read_their_inputs_in_order(wiring, in_features, neurons):
    assert wired(Forest.grow(3, fan_in=5, neurons=2, ragged=True), wiring, in_features) == neurons


@pytest.mark.parametrize(
    ("wiring", "in_features", "neurons"),
    [
        (Partition(), 12, [[[0, 1], [2, 3]], [4, 5, 6], [[7, 8, 9], [10, 11]]]),
        (Shared(), 5, [[[0, 1], [2, 3]], [0, 1, 2], [[0, 1, 2], [3, 4]]]),
    ],
)
def test_unequal_trees_read_their_inputs_in_order(wiring, in_features, neurons):
    assert wired(UNEQUAL, wiring, in_features) == neurons


def test_synapses_at_several_levels_of_several_neurons_stay_in_their_slice():
    forest = Forest.join([Forest.nested([1, [2]]), Forest.nested([2, [1]])])
    assert [sorted(flat(tree)) for tree in wired(forest, Partition(), 6)] == [[0, 1, 2], [3, 4, 5]]
    assert [sorted(flat(tree)) for tree in wired(forest, Shared(), 3)] == [[0, 1, 2], [0, 1, 2]]


@given(unwired_forests)
def test_partition_gives_neuron_n_the_nth_slice_and_every_input_one_reader(forest):
    start = 0
    for tree, before in zip(wired(forest, Partition(), forest.in_features), as_lists(forest), strict=True):
        inputs = flat(tree)
        assert sorted(inputs) == list(range(start, start + len(flat(before))))
        start += len(inputs)
    assert start == forest.in_features


@given(unwired_forests)
def test_shared_starts_every_neuron_at_the_first_input(forest):
    most = max(len(flat(tree)) for tree in as_lists(forest))
    for tree in wired(forest, Shared(), most):
        assert sorted(flat(tree)) == list(range(len(flat(tree))))


@pytest.mark.parametrize("wiring", [Partition(), Shared()])
def test_index_has_one_integer_per_synapse(wiring):
    index = wiring.index(UNEQUAL, 12)
    assert index.shape == (12,)
    assert index.dtype == np.int32


def test_a_wiring_never_copies_the_input():
    forest = Forest.grow(32, fan_in=1024, neurons=10)
    layer = forest.wired(Shared().index(forest, 1024), 1024)
    assert layer.in_features == 1024  # rows of input stay as many as there are inputs, ten neurons read them
    assert np.bincount(layer.synapse_inputs).tolist() == [10] * 1024


@pytest.mark.parametrize(("wiring", "in_features"), [(Partition(), 7), (Shared(), 3)])
def test_too_few_inputs_for_the_trees_are_rejected(wiring, in_features):
    forest = Forest.grow(2, fan_in=4, neurons=2)
    with pytest.raises(ShapeError, match=rf"a wiring must name inputs 0 \.\.\. {in_features - 1}: got 0 \.\.\. "):
        forest.wired(wiring.index(forest, in_features), in_features)


# --------------------------------------------------------------------------------------------------------- objects


@pytest.mark.parametrize("name", sorted(WIRINGS.keys() - {"custom"}))
def test_a_name_stands_for_the_wiring_with_default_options(name):
    wiring = resolve_wiring(name)
    assert wiring == WIRINGS[name]()
    assert wiring.name == name


def test_a_custom_wiring_has_no_default_and_so_no_name_to_stand_for_it():
    with pytest.raises(OptionError) as error:
        resolve_wiring("custom")
    assert str(error.value) == "a custom wiring needs its inputs: give Custom(inputs), not 'custom'"


def test_the_names_of_the_papers_wirings():
    assert resolve_wiring("partition") == Partition()
    assert resolve_wiring("shared") == Shared()


@pytest.mark.parametrize("wiring", [Partition(), Shared()])
def test_a_wiring_stands_for_itself(wiring):
    assert isinstance(wiring, Wiring)
    assert resolve_wiring(wiring) is wiring


@pytest.mark.parametrize("kind", [Partition, Shared])
def test_wirings_are_frozen_values(kind):
    assert kind() == kind()
    assert hash(kind()) == hash(kind())
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        kind().name = "other"
    assert Partition() != Shared()


@given(st.sampled_from([Partition(), Shared()]), unwired_forests)
def test_a_wiring_gives_the_same_index_every_time(wiring, forest):
    assert np.array_equal(wiring.index(forest, forest.in_features), wiring.index(forest, forest.in_features))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("shard", r"wiring must be one of .*'partition'.*'shared'.*: got 'shard'; did you mean 'shared'\?"),
        ("Partition", r"wiring must be one of .*: got 'Partition'; did you mean 'partition'\?"),
        ("xyz", r"wiring must be one of .*: got 'xyz'$"),
        ("", r"wiring must be one of .*: got ''$"),
        (None, r"wiring must be a name or a Wiring object: got None"),
        (3, r"wiring must be a name or a Wiring object: got 3"),
        (Shared, r"wiring must be a name or a Wiring object: got <class 'dendritree\.wiring\.plain\.Shared'>"),
    ],
)
def test_unknown_wirings_are_rejected_with_a_near_match(value, message):
    with pytest.raises(OptionError, match=message):
        resolve_wiring(value)
