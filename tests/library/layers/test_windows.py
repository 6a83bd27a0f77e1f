"""The windows of a layer wired `Local`: where they lie, and that they travel with the wiring they belong to."""

import copy
import io

import numpy as np
import pytest
import torch
from hypothesis import given
from rewired_cases import inputs_by
from torch import nn
from wiring_cases import layer_options

import dendritree
from dendritree import DendriticLayer, MLNClassifier
from dendritree.training.rewiring import rewire
from dendritree.wiring import Local


def layer(seed=0, **options):
    given = {"in_features": 36, "out_features": 3, "branching": [4, 2], "wiring": Local(window=3, seed=seed)}
    return DendriticLayer(**{**given, **options})


def is_inside(inputs, window, image):
    _, height, width = image
    top, left, high, wide = window.tolist()
    return all(top <= i % (height * width) // width < top + high and left <= i % width < left + wide for i in inputs)


# ------------------------------------------------------------------------------------------------------ where they lie


@given(layer_options())
def test_windows_hold_what_is_read_where_the_wiring_has_them(options):
    made = DendriticLayer(**options)
    if not isinstance(made.wiring, Local):
        assert made.windows is None
        return
    read = inputs_by(made, 1)
    assert made.windows.shape == (made.forest.nodes, 4)
    for node, window in enumerate(made.windows):
        assert window.any() == (node in read)
        assert is_inside(read.get(node, []), window, made.wiring.image_shape)


def test_windows_cannot_be_written_and_stay_when_a_layer_is_rewired():
    target, other = layer(1), layer(2)
    windows = target.windows
    with pytest.raises(ValueError, match="read-only"):
        windows[0] = 0
    target.rewire(other.forest)
    assert target.windows is windows
    assert target.forest == other.forest
    assert np.array_equal(copy.deepcopy(target).windows, windows)


# ---------------------------------------------------------------------------------------------------------- they travel


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("repeats", [None, 2])
def test_a_state_dict_brings_its_windows(assign, repeats):
    source, target = layer(1, repeats=repeats), layer(2, repeats=repeats)
    assert not np.array_equal(target.windows, source.windows)
    buffer = io.BytesIO()
    torch.save(source.state_dict(), buffer)
    buffer.seek(0)
    target.load_state_dict(torch.load(buffer, weights_only=True), assign=assign)
    assert np.array_equal(target.windows, source.windows)
    assert target.windows.dtype == np.int32
    assert not target.windows.flags.writeable
    for step in range(5):
        rewire(target, 0.5, where="window", random=np.random.default_rng(step))
    assert all(is_inside(read, source.windows[node], (1, 6, 6)) for node, read in inputs_by(target, 1).items())


def test_saved_models_keep_their_windows(tmp_path):
    model = MLNClassifier(64, 3, branching="auto", wiring="local")
    rewire(model.layer, 0.4, where="window")
    dendritree.save(model, tmp_path / "model")
    actual = dendritree.load(tmp_path / "model")
    assert np.array_equal(actual.layer.windows, model.layer.windows)
    assert actual.layer.forest == model.layer.forest


# ---------------------------------------------------------------------------------------------------------- rejections


def test_missing_windows_are_missing_unless_not_strict():
    source, target = nn.Sequential(layer(1)), nn.Sequential(layer(2))
    windows, state = target[0].windows, source.state_dict()
    del state["0.forest_windows"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.forest_windows"\.'):
        target.load_state_dict(state)
    target.load_state_dict(state, strict=False)
    assert target[0].forest == source[0].forest
    assert target[0].windows is windows


def with_window(node, window):
    def change(windows):
        windows[node] = torch.tensor(window, dtype=windows.dtype)
        return windows

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:-1], "shape"),
        (lambda w: w.float(), "integers"),
        (with_window(0, [4, 0, 3, 3]), "inside an image of 6 x 6"),
        (with_window(0, [-1, 0, 3, 3]), "inside an image of 6 x 6"),
        (lambda w: w.long() + 2**32, "inside an image of 6 x 6"),
    ],
)
def test_windows_that_do_not_fit_are_rejected_and_nothing_changes(change, message):
    target, state = nn.Sequential(layer(2)), nn.Sequential(layer(1)).state_dict()
    before, forest, windows = copy.deepcopy(target.state_dict()), target[0].forest, target[0].windows
    state["0.forest_windows"] = change(state["0.forest_windows"])
    with pytest.raises(RuntimeError, match=f"0: forest_windows.*{message}"):
        target.load_state_dict(state)
    assert target[0].forest is forest
    assert target[0].windows is windows
    assert all(torch.equal(value, before[key]) for key, value in target.state_dict().items())
