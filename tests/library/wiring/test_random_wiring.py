"""Random: inputs dealt from shuffled decks, none twice where that is possible, all about equally often."""

import numpy as np
import pytest
import torch
from forests import unwired_forests
from hypothesis import given
from hypothesis import strategies as st
from wiring_cases import by_dendrite, by_neuron

from dendritree.errors import OptionError
from dendritree.tree import Forest
from dendritree.wiring import Random
from dendritree.wiring.plain import deal


def wired(forest, in_features, seed=0):
    return forest.wired(Random(seed=seed).index(forest, in_features), in_features)


@given(unwired_forests, st.integers(1, 40), st.integers(0, 2**62))
def test_every_input_is_read_about_equally_often(forest, in_features, seed):
    index = Random(seed=seed).index(forest, in_features)
    assert index.dtype == np.int32
    counts = [index.tolist().count(i) for i in range(in_features)]  # an index out of range would be missing here
    assert sum(counts) == forest.synapses
    assert max(counts) - min(counts) <= 2


@given(unwired_forests, st.integers(0, 20), st.integers(0, 2**62))
def test_no_neuron_reads_an_input_twice_while_it_has_no_more_synapses_than_inputs(forest, more, seed):
    in_features = max(map(len, by_neuron(forest))) + more
    for inputs in by_neuron(wired(forest, in_features, seed)):
        assert len(set(inputs)) == len(inputs)


@given(unwired_forests, st.integers(0, 3), st.integers(0, 2**62))
def test_no_dendrite_reads_an_input_twice_where_neurons_have_to(forest, more, seed):
    in_features = more + max(len(dendrite) for neuron in by_dendrite(forest) for dendrite in neuron)
    for dendrites in by_dendrite(wired(forest, in_features, seed)):
        assert all(len(set(dendrite)) == len(dendrite) for dendrite in dendrites)


def test_every_input_comes_to_every_place():
    """1,000 deals of 4 inputs to two neurons of 3: each place sees each input a quarter of the time (6 sigma)."""
    forest = Forest.grow(3, fan_in=3, neurons=2)
    deals = np.stack([Random(seed=seed).index(forest, 4) for seed in range(1000)])  # the second hand mixes two decks
    for place in deals.T:
        assert abs(np.bincount(place, minlength=4) / 1000 - 1 / 4).max() < 6 * (3 / 16 / 1000) ** 0.5


# ------------------------------------------------------------------------------------------------------------- seeds


def test_a_seed_gives_the_same_wiring_and_leaves_torch_alone():
    forest, before = Forest.grow(4, fan_in=16, neurons=3), torch.get_rng_state()
    first, again, other = (Random(seed=seed).index(forest, 100) for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_torch_governs():
    forest, actual = Forest.grow(4, fan_in=16, neurons=3), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        actual.append([Random().index(forest, 100).tolist() for _ in range(2)])
    assert actual[0] == actual[1]
    assert actual[0] != actual[2]
    assert actual[0][0] != actual[0][1]  # two layers of one model differ


# -------------------------------------------------------------------------------------------------------------- deal


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(any), st.integers(1, 12), st.integers(0, 99))
def test_hands_are_dealt_from_whole_decks(sizes, cards, seed):
    dealt = deal(np.array(sizes), cards, np.random.default_rng(seed)).tolist()
    assert len(dealt) == sum(sizes)
    for start in range(0, len(dealt) - cards + 1, cards):
        assert sorted(dealt[start : start + cards]) == list(range(cards))
    start = 0
    for size in sizes:
        if size <= cards:
            assert len(set(dealt[start : start + size])) == size
        start += size


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", 2**63])
def test_bad_seeds_are_rejected(seed):
    with pytest.raises(OptionError, match="seed"):
        Random(seed=seed)
