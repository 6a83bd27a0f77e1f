"""rewire(where="window"): synapses stay in the windows of a Local wiring."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rewired_cases import inputs_by, make_layer

from dendritree import DendriticLayer
from dendritree.errors import OptionError
from dendritree.training.rewiring import rewire
from dendritree.tree import Forest
from dendritree.wiring import Local, Tied


def by_seed(seed):
    return np.random.default_rng(seed)


def make_local(wiring, in_features=64, neurons=6, seed=0, **options):
    torch.manual_seed(seed)
    return DendriticLayer(in_features, neurons, wiring=wiring, **{"branching": [5, 3], **options})


def spans(groups, image_shape):
    """Rows and columns that each group of inputs reaches over."""
    _, height, width = image_shape
    reaches = []
    for inputs in groups.values():
        rows, columns = np.divmod(np.array(inputs) % (height * width), width)
        reaches.append((int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1))
    return reaches


IMAGES = [((1, 8, 8), 4), ((2, 6, 9), 3), ((1, 3, 12), 5)]


@pytest.mark.parametrize("per", ["dendrite", "neuron"])
@pytest.mark.parametrize("place", ["near", "free"])
@pytest.mark.parametrize(("image_shape", "window"), IMAGES, ids=repr)
def test_however_often_synapses_move_they_stay_in_a_window(image_shape, window, place, per):
    wiring = Local(window=window, per=per, place=place, image_shape=image_shape)
    layer = make_local(wiring, int(np.prod(image_shape)), branching=[3, 2])
    group = 1 if per == "dendrite" else 0
    first = inputs_by(layer, group)
    for step in range(15):
        assert len(rewire(layer, 0.4, where="window", random=by_seed(step))) == 6 * 2
        with torch.no_grad():
            layer.weight.normal_()  # so that others are the weakest
        assert max(max(span) for span in spans(inputs_by(layer, group), image_shape)) <= window
    assert inputs_by(layer, group) != first


def pixels(window, image_shape):
    """The inputs of a window given by top, left, height and width, all channels."""
    (channels, height, width), (top, left, high, wide) = image_shape, window.tolist()
    return {
        c * height * width + y * width + x
        for c in range(channels)
        for y in range(top, top + high)
        for x in range(left, left + wide)
    }


@pytest.mark.parametrize("per", ["dendrite", "neuron"])
@pytest.mark.parametrize("repeats", [None, 2])
def test_all_of_a_window_is_used_and_nothing_else(per, repeats):
    layer = make_local(Local(window=3, per=per, image_shape=(2, 5, 6)), 60, branching=[4, 2], repeats=repeats)
    windows = layer.windows.copy()
    seen = {node: set(inputs) for node, inputs in inputs_by(layer, 1).items()}
    for step in range(60):
        rewire(layer, 0.5, where="window", random=by_seed(step))
        with torch.no_grad():
            layer.weight.normal_()  # so that others are the weakest
        for node, inputs in inputs_by(layer, 1).items():
            seen[node] |= set(inputs)
    assert seen == {node: pixels(windows[node], (2, 5, 6)) for node in seen}
    assert np.array_equal(layer.windows, windows)


@given(
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    channels=st.integers(1, 2),
    window=st.integers(1, 8),
    per=st.sampled_from(["dendrite", "neuron"]),
    fan_in=st.integers(1, 9),
    fraction=st.floats(0, 1, exclude_max=True),
    seed=st.integers(0, 99),
)
def test_any_image_and_window(height, width, channels, window, per, fan_in, fraction, seed):
    image = (channels, height, width)
    wiring = Local(window=window, per=per, image_shape=image)
    layer = make_local(wiring, channels * height * width, 3, seed, branching=3, fan_in=fan_in)
    for step in range(3):
        rewire(layer, fraction, where="window", random=by_seed(step))
        groups = inputs_by(layer, 1 if per == "dendrite" else 0)
        for inputs, span in zip(groups.values(), spans(groups, image), strict=True):
            assert max(span) <= window
            assert max(inputs) < channels * height * width


# ------------------------------------------------------------------------------------------------------------ errors


def tied_without_windows():
    forest = Forest.grow([2, 4], neurons=3)
    tied = Tied(window=2, seed=0).attach(forest, 64)
    return DendriticLayer.from_forest(forest.tied(tied.template).wired(tied.inputs, 64))


@pytest.mark.parametrize(
    "make",
    [lambda: make_layer("random"), lambda: make_layer("custom"), tied_without_windows],
    ids=["random", "custom", "tied"],
)
@pytest.mark.parametrize("fraction", [0.5, 0.01], ids=["some move", "none would move"])
def test_trees_must_have_windows(make, fraction):
    layer = make()
    before, weight = layer.forest, layer.weight.detach().clone()
    with pytest.raises(OptionError, match="windows"):
        rewire(layer, fraction, where="window")
    assert layer.forest is before
    assert torch.equal(layer.weight, weight)


@pytest.mark.parametrize(
    ("make", "where"), [(lambda: make_layer("random"), "windw"), (tied_without_windows, "anywhere")]
)
def test_where_is_window_or_anywhere_and_tied_dendrites_stay_in_windows(make, where):
    with pytest.raises(OptionError, match="where must be"):
        rewire(make(), 0.5, where=where)
