"""Strided combs, and wirings given by hand."""

import numpy as np
import pytest
import torch
from forests import as_lists, unwired_forests
from hypothesis import given
from hypothesis import strategies as st
from wiring_cases import by_dendrite, by_neuron

from dendritree import DendriticLayer
from dendritree.errors import DendritreeError, OptionError
from dendritree.wiring import Custom, Strided


def combs(forest, in_features):
    """`by_dendrite` of a strided forest, in plain Python: synapses dealt round by round along the inputs."""
    neurons = by_dendrite(forest)
    for n, dendrites in enumerate(neurons):
        fan_in, step = sum(map(len, dendrites)), 0
        begin = n * in_features // (fan_in * len(neurons))
        for turn in range(max(map(len, dendrites))):
            for dendrite in dendrites:
                if turn < len(dendrite):
                    dendrite[turn] = step * in_features // fan_in + begin
                    step += 1
    return neurons


@given(unwired_forests, st.integers(1, 40))
def test_strided_is_a_deal_in_rounds(forest, in_features):
    index = Strided().index(forest, in_features)
    assert index.dtype == np.int32
    assert by_dendrite(forest.wired(index, in_features)) == combs(forest, in_features)


def test_neurons_of_a_huge_layer_begin_one_after_the_other():
    layer = DendriticLayer(2_000_000, 1_100, branching=2, fan_in=2, wiring="strided")
    first = [inputs[0] for inputs in by_neuron(layer.forest)]
    assert first == [n * 2_000_000 // 2_200 for n in range(1_100)]


# ------------------------------------------------------------------------------------------------------------- custom


@given(unwired_forests, st.integers(1, 9), st.randoms(use_true_random=False))
def test_custom_inputs_go_neuron_by_neuron_in_the_order_of_the_dendrites(forest, in_features, random):
    given_inputs = [[random.randrange(in_features) for _ in inputs] for inputs in by_neuron(forest)]
    wiring = Custom([i for inputs in given_inputs for i in inputs])
    assert by_neuron(forest.wired(wiring.index(forest, in_features), in_features)) == given_inputs


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 9), st.integers(2, 4), st.integers(0, 99))
def test_the_inputs_of_any_layer_make_the_same_layer(in_features, neurons, fan_in, branching, seed):
    torch.manual_seed(seed)
    drawn = DendriticLayer(in_features, neurons, branching=branching, fan_in=fan_in, wiring="random")
    wiring = Custom(by_neuron(drawn.forest))
    assert DendriticLayer(in_features, neurons, branching=branching, wiring=wiring).forest == drawn.forest


@pytest.mark.parametrize(
    "inputs",
    [
        [[0, 1], [2, 0]],
        ((0, 1), (2, 0)),
        np.array([[0, 1], [2, 0]], dtype=np.uint8),
        torch.tensor([[0, 1], [2, 0]]),
    ],
)
def test_inputs_come_as_lists_arrays_or_tensors(inputs):
    wiring = Custom(inputs)
    assert wiring == Custom([[0, 1], [2, 0]])
    assert hash(wiring) == hash(Custom([[0, 1], [2, 0]]))
    assert as_lists(DendriticLayer(3, 2, branching=2, wiring=wiring).forest) == [[0, 1], [2, 0]]


@pytest.mark.parametrize(
    "inputs", [[], [[[0]]], 3, None, "01", [0.0, 1.0], [True, False], [[0, 1], [2]], [0, -1], [0, 2**31]], ids=str
)
def test_other_inputs_are_rejected(inputs):
    with pytest.raises(OptionError, match="inputs must be"):
        Custom(inputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wiring": Custom([0, 1, 2])}, "2 neurons"),
        ({"wiring": Custom([[0, 1], [2, 3], [0, 1]])}, "2 neurons"),
        ({"wiring": Custom([0, 4])}, "inputs 0 ... 3"),
        ({"fan_in": 3}, "6 synapses: got 4"),
        ({"branching": [2, [1]]}, "6 synapses: got 4"),
    ],
)
def test_custom_inputs_that_do_not_fit_the_layer_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(4, 2, **{"branching": 2, "wiring": Custom([[0, 1], [2, 3]]), **options})
