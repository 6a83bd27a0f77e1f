"""What goes into a run comes out of it, bit for bit, once, in one order."""

import math
import random
import struct
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import kept_trial
from torch import nn

from dendritree.errors import OptionError
from dendritree.wiring import Shared
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES, key_text


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {"trials": 10}) as store:
        yield store


def bits(number):
    """A float's bytes; every NaN is the same."""
    return "nan" if math.isnan(number) else struct.pack("<d", number)


# ------------------------------------------------------------------------------------------------------- round trips


def test_a_trial_comes_back_as_it_went_in(store):
    trial = kept_trial(
        3, scores={"test_loss": 0.1, "test_acc": 0.9}, config={"network": "mln", "arguments": {"b": [4]}}
    )
    store.add([trial])
    assert store.trials() == [trial]


@given(
    curves=st.integers(1, 5).flatmap(
        lambda epochs: st.fixed_dictionaries(
            {c: st.lists(st.floats(), min_size=epochs, max_size=epochs) for c in CURVES}
        )
    ),
    score=st.floats(),
    seconds=st.floats(),
    seed=st.integers(-(2**63), 2**63 - 1),
    number=st.integers(0, 2**40),
    dropout=st.floats(allow_nan=False, allow_infinity=False),
)
def test_every_number_comes_back_bit_for_bit(tmp_path_factory, curves, score, seconds, seed, number, dropout):
    folder = tmp_path_factory.mktemp("run")
    key = {"dropout": dropout, "trial": number}
    with RunStore.create_or_open(folder, {}) as store:
        store.add(
            [kept_trial(key=key, curves=curves, parameters=number, seconds=seconds, seed=seed, scores={"a": score})]
        )
    with RunStore.open_for_reading(folder) as store:
        [got] = store.trials()
    assert (got.seed, got.key, got.parameters) == (seed, key, number)
    assert bits(got.seconds) == bits(seconds)
    assert bits(got.scores["a"]) == bits(score)
    for curve in CURVES:
        assert [bits(value) for value in got.curves[curve]] == [bits(value) for value in curves[curve]]
        assert all(type(value) is float for value in got.curves[curve])


def test_numbers_of_numpy_and_integers_become_plain_floats(store):
    curves = {curve: [np.float32(0.1), np.float64(0.2), 1] for curve in CURVES}
    store.add([kept_trial(seed=np.int32(5), seconds=np.float32(0.5), curves=curves)])
    [got] = store.trials()
    assert got.curves["val_acc"] == [float(np.float32(0.1)), 0.2, 1.0]
    assert {type(value) for value in got.curves["val_acc"]} == {float}
    assert (got.seed, got.seconds) == (5, 0.5)


def test_wirings_and_activations_of_a_model_come_back(store):
    arguments = {"in_features": 16, "branching": [4, 4], "wiring": Shared(), "activation": nn.LeakyReLU}
    store.add([kept_trial(config={"network": "mln", "arguments": arguments})])
    got = store.trials()[0].config["arguments"]
    assert got.keys() == arguments.keys()
    assert got["wiring"] == Shared()
    assert isinstance(got["activation"], nn.LeakyReLU)


def test_odd_text_comes_back(store):
    trial = kept_trial(task="tabl\u00e9 'x'; --", family='multi\nclass"')
    store.add([trial])
    assert store.trials() == store.trials(task=trial.key["task"]) == [trial]


# ------------------------------------------------------------------------------------------------ order and choosing


def grid():
    """Trials of three tasks and two families."""
    return [kept_trial(i, task=f"task-{t}", family=f) for t in "abc" for f in ("dense", "tree") for i in (0, 1, 10)]


def test_trials_have_one_order_whatever_the_order_they_came_in(store):
    trials = grid()
    shuffled = random.Random(0).sample(trials, len(trials))
    for batch in (shuffled[:5], shuffled[5:]):
        store.add(batch)
    assert store.trials() == trials


@pytest.mark.parametrize("wanted", [{}, {"task": "task-b"}, {"family": "tree", "trial": 10}, {"task": "none"}])
def test_trials_whose_key_has_some_values(store, wanted):
    store.add(grid())
    expected = [trial for trial in grid() if wanted.items() <= trial.key.items()]
    assert store.trials(**wanted) == expected


def test_present_holds_the_key_of_each_trial(store):
    assert store.present() == set()
    store.add(grid())
    assert len(store) == len(grid())
    assert store.present() == {("fair", key_text(trial.key)) for trial in grid()}


def test_both_zeros_are_one_key(store):
    store.add([kept_trial(key={"dropout": -0.0})])
    with pytest.raises(OptionError, match=r"a trial is stored once: fair: dropout 0\.0 is in"):
        store.add([kept_trial(key={"dropout": 0.0})])


# ---------------------------------------------------------------------------------------------------- once, or not


def test_a_trial_already_there_is_rejected_and_its_companions_with_it(store):
    store.add([kept_trial(1)])
    with pytest.raises(
        OptionError,
        match=r"^a trial is stored once: fair: task mnist, budget 9000, family mlp, trial 1 is in .* already$",
    ):
        store.add([kept_trial(0), kept_trial(1, seed=9)])
    assert store.trials() == [kept_trial(1)]
    store.add([kept_trial(0)])  # whatever was half done is gone
    assert len(store) == 2


def test_a_trial_twice_in_one_batch_is_rejected(store):
    with pytest.raises(OptionError, match="a trial is stored once"):
        store.add([kept_trial(), kept_trial()])
    assert len(store) == 0


def test_one_key_in_two_studies_is_two_trials(store):
    store.add([kept_trial(), kept_trial(study="paper")])
    assert [trial.study for trial in store.trials()] == ["fair", "paper"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"curves": {"val_loss": [1.0]}},
            "a trial must have the curves train_loss, val_loss, train_acc, val_acc: fair",
        ),
        ({"curves": {c: [0.5] * (1 + (c == "val_acc")) for c in CURVES}}, "curves must have one value per epoch, at"),
        ({"curves": {c: [] for c in CURVES}}, "curves must have one value per epoch, at least one: .*'val_acc': 0"),
        ({"seed": 2**63}, "seed must be a signed 64-bit integer: .* has 9223372036854775808"),
        ({"key": {"dropout": math.nan}}, "a key must hold strings and finite numbers: .* has dropout nan"),
        ({"key": {"wiring": Shared()}}, "a key must hold strings and finite numbers: .* has wiring Shared"),
        (
            {"config": {"a": object()}},
            "a must be a plain value, a wiring or a module of torch.nn to be saved: got <obj",
        ),
        ({"config": {"a": math.nan}}, "a config must hold plain values: .* has Out of range float"),
    ],
)
def test_a_trial_that_could_not_come_back_is_rejected_before_anything_is_written(store, options, message):
    with pytest.raises(OptionError, match=f"^{message}"):
        store.add([kept_trial(7), kept_trial(**options)])
    assert len(store) == 0


def test_threads_take_turns(store):
    def add(base):
        for i in range(10):
            store.add([kept_trial(base + i)])
            store.present()

    threads = [threading.Thread(target=add, args=(base,)) for base in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 30
