"""What goes into a run comes out of it, bit for bit, once, in one order."""

import itertools
import math
import random
import struct
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import TREE, made_trial
from torch import nn

from dendritree.errors import OptionError
from dendritree.studies.engine.trial import CURVES
from dendritree.studies.paper.records import Row
from dendritree.studies.engine.store import RunStore, TrialKey
from dendritree.wiring import Shared


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {"trials": 10}) as store:
        yield store


def bits(number):
    """A float's bytes; every NaN is the same."""
    return "nan" if math.isnan(number) else struct.pack("<d", number)


# ------------------------------------------------------------------------------------------------------- round trips


def test_a_trial_comes_back_as_it_went_in(store):
    trial = made_trial(TREE, 3, test_loss=0.1, test_acc=0.9, model_config={"in_features": 16, "branching": 4})
    assert store.add([trial]) == 1
    assert store.records() == [trial]


@settings(deadline=None, max_examples=60)
@given(
    history=st.integers(1, 5).flatmap(
        lambda epochs: st.fixed_dictionaries(
            {c: st.lists(st.floats(), min_size=epochs, max_size=epochs) for c in CURVES}
        )
    ),
    test_loss=st.none() | st.floats(),
    test_acc=st.none() | st.floats(),
    lr=st.floats(),
    seconds=st.floats(),
    seed=st.integers(-(2**63), 2**63 - 1),
    number=st.integers(0, 2**40),
    count=st.integers(1, 2**40),
)
def test_every_number_comes_back_bit_for_bit(
    tmp_path_factory, history, test_loss, test_acc, lr, seconds, seed, number, count
):
    folder = tmp_path_factory.mktemp("run")
    options = {"lr": lr, "seconds": seconds, "seed": seed, "test_loss": test_loss, "test_acc": test_acc}
    with RunStore.create_or_open(folder, {}) as store:
        store.add([made_trial(index=number, history=history, parameters=count, **options)])
    with RunStore.open_for_reading(folder) as store:
        [got] = store.records()
    assert (got.seed, got.index, got.parameters) == (seed, number, count)
    assert bits(got.lr) == bits(lr)
    assert bits(got.seconds) == bits(seconds)
    for name, value in (("test_loss", test_loss), ("test_acc", test_acc)):
        assert (getattr(got, name) is None) == (value is None)
        assert value is None or bits(getattr(got, name)) == bits(value)
    for curve in CURVES:
        assert [bits(value) for value in got.history[curve]] == [bits(value) for value in history[curve]]
        assert all(type(value) is float for value in got.history[curve])


def test_numbers_of_numpy_and_integers_become_plain_floats(store):
    history = {curve: [np.float32(0.1), np.float64(0.2), 1] for curve in CURVES}
    store.add([made_trial(index=np.int64(2), seed=np.int32(5), lr=np.float32(0.5), history=history)])
    [got] = store.records()
    assert got.history["val_acc"] == [float(np.float32(0.1)), 0.2, 1.0]
    assert {type(value) for value in got.history["val_acc"]} == {float}
    assert (got.index, got.seed, got.lr) == (2, 5, 0.5)


def test_wirings_and_activations_of_a_model_come_back(store):
    config = {"in_features": 16, "branching": [4, 4], "wiring": Shared(), "activation": nn.LeakyReLU}
    store.add([made_trial(TREE, model_config=config)])
    got = store.records()[0].model_config
    assert got.keys() == config.keys()
    assert got["wiring"] == Shared()
    assert isinstance(got["activation"], nn.LeakyReLU)


def test_odd_text_comes_back(store):
    row = Row("tablé 'x'; --", "multi\nclass", "mlp", 3, 0.1)
    trial = made_trial(row, dataset='"mnist"')
    store.add([trial])
    assert store.records() == [trial]
    assert store.records(table=row.table) == [trial]


# ------------------------------------------------------------------------------------------------ order and choosing


def grid():
    """Trials of two protocols and three tables."""
    rows = [Row(f"table-{t}", "multiclass", "mlp", size, p) for t in "abc" for size in (2, 14) for p in (0.0, 0.1, 0.6)]
    return [
        made_trial(row, index, protocol=protocol)
        for protocol in ("full", "paper")
        for row in rows
        for index in (0, 1, 10)
    ]


def test_records_have_one_order_whatever_the_order_they_came_in(store):
    trials = grid()
    shuffled = random.Random(0).sample(trials, len(trials))
    for batch in (shuffled[:50], shuffled[50:]):
        store.add(batch)
    assert store.records() == sorted(trials, key=TrialKey.of) == trials


@pytest.mark.parametrize(("protocol", "table"), [*itertools.product((None, "full", "none"), (None, "table-b", "none"))])
def test_records_of_a_protocol_or_a_table(store, protocol, table):
    store.add(grid())
    wanted = [t for t in grid() if protocol in (None, t.protocol) and table in (None, t.row.table)]
    assert store.records(protocol, table) == wanted


def test_present_holds_the_key_of_each_trial(store):
    assert store.present() == set()
    store.add(grid())
    assert len(store) == len(grid())
    assert store.present() == {
        (t.protocol, t.row.table, t.row.network, t.row.size, t.row.dropout, t.index) for t in grid()
    }


def test_both_zeros_are_one_dropout(store):
    store.add([made_trial(Row("t", "multiclass", "mlp", 3, -0.0))])
    assert store.add([made_trial(Row("t", "multiclass", "mlp", 3, 0.0))], skip_present=True) == 0


# ---------------------------------------------------------------------------------------------------- once, or not


def test_a_trial_already_there_is_refused_and_its_companions_with_it(store):
    store.add([made_trial(index=1)])
    with pytest.raises(
        OptionError, match=r"^a trial is stored once: paper/multiclass-mlp mlp 11 p=0 trial 1 is in .* already$"
    ):
        store.add([made_trial(index=0), made_trial(index=1, seed=9)])
    assert store.records() == [made_trial(index=1)]
    store.add([made_trial(index=0)])  # whatever was half done is gone
    assert len(store) == 2


def test_a_trial_twice_in_one_batch_is_refused(store):
    with pytest.raises(OptionError, match="a trial is stored once"):
        store.add([made_trial(), made_trial()])
    assert len(store) == 0


def test_skip_present_stores_the_missing_ones_and_leaves_the_others(store):
    store.add([made_trial(index=1)])
    again = [made_trial(index=i, seconds=9.0) for i in range(3)]
    assert store.add(again, skip_present=True) == 2
    assert store.records() == [again[0], made_trial(index=1), again[2]]


def test_nothing_to_add_is_nothing_added(store):
    assert store.add([]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"history": {"val_loss": [1.0]}},
            "a history must have the curves train_loss, val_loss, train_acc, val_acc: paper",
        ),
        (
            {"history": {c: [0.5] * (1 + (c == "val_acc")) for c in CURVES}},
            "curves must have one value an epoch, at least",
        ),
        ({"history": {c: [] for c in CURVES}}, "curves must have one value an epoch, at least one: .*'val_acc': 0"),
        ({"index": -1}, "index and size must not be negative: got .* trial -1"),
        ({"seed": 2**63}, "seed must fit 64 bits with a sign: .* has 9223372036854775808"),
        ({"row": Row("t", "multiclass", "mlp", 3, math.nan)}, "dropout must be finite: got .*p=nan"),
        (
            {"model_config": {"a": object()}},
            "a must be a plain value, a wiring or a module of torch.nn to be saved: got <obj",
        ),
        ({"model_config": {"a": math.nan}}, "model_config must be plain values: .* has Out of range float"),
    ],
)
def test_a_record_that_could_not_come_back_is_refused_before_anything_is_written(store, options, message):
    with pytest.raises(OptionError, match=f"^{message}"):
        store.add([made_trial(index=7), made_trial(**options)])
    assert len(store) == 0


def test_threads_take_turns(store):
    threads = [
        threading.Thread(
            target=lambda base=base: [store.add([made_trial(index=base + i)]) and store.present() for i in range(10)]
        )
        for base in (0, 100, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 30
