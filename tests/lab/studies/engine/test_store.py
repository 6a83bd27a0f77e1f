"""What goes into a run comes out of it, bit for bit, once, in one order; anything that is not that run is rejected."""

import math
import random
import sqlite3
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import kept_trial
from torch import nn

from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree.wiring import Shared
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.engine.trial import CURVES

CONFIG = {"trials": 10, "protocol": {"name": "paper", "lr": {"dendritic": 0.05, "mlp": 0.001}}, "tables": ["a", "b"]}


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", CONFIG) as store:
        yield store


def stored(store):
    """The trials as another process reads them."""
    with RunStore.open_for_reading(store.folder) as reader:
        return reader.trials()


def edit(folder, sql):
    """Change the file as any other program would."""
    connection = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
    connection.execute(sql)
    connection.close()


# ------------------------------------------------------------------------------------------------------- round trips


def bits(number):
    """A float's bytes; every NaN is the same."""
    return "nan" if math.isnan(number) else struct.pack("<d", number)


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
    key = {"dropout": dropout, "trial": number}
    with RunStore.create_or_open(tmp_path_factory.mktemp("run"), {}) as store:
        numbers = {"parameters": number, "seconds": seconds, "seed": seed, "scores": {"a": score}}
        store.add([kept_trial(key=key, curves=curves, **numbers)])
        [trial] = stored(store)
    assert (trial.seed, trial.key, trial.parameters) == (seed, key, number)
    assert (bits(trial.seconds), bits(trial.scores["a"])) == (bits(seconds), bits(score))
    for curve in CURVES:
        assert [bits(value) for value in trial.curves[curve]] == [bits(value) for value in curves[curve]]


def test_wirings_activations_and_odd_text_come_back(store):
    arguments = {"in_features": 16, "branching": [4, 4], "wiring": Shared(), "activation": nn.LeakyReLU}
    store.add([kept_trial(task="tabl\u00e9 'x'; --\n", config={"network": "mln", "arguments": arguments})])
    [trial] = stored(store)
    assert trial.key["task"] == "tabl\u00e9 'x'; --\n"
    assert trial.config["arguments"].keys() == arguments.keys()
    assert trial.config["arguments"]["wiring"] == Shared()
    assert isinstance(trial.config["arguments"]["activation"], nn.LeakyReLU)


def grid():
    """Trials of three tasks and two families."""
    return [kept_trial(i, task=f"task-{t}", family=f) for t in "abc" for f in ("dense", "tree") for i in (0, 1, 10)]


@pytest.mark.parametrize("wanted", [{}, {"task": "task-b"}, {"family": "tree", "trial": 10}, {"task": "none"}])
def test_trials_have_one_order_and_are_selected_by_their_keys(store, wanted):
    shuffled = random.Random(0).sample(grid(), len(grid()))
    for batch in (shuffled[:5], shuffled[5:]):
        store.add(batch)
    expected = [trial for trial in grid() if wanted.items() <= trial.key.items()]
    assert store.trials(**wanted) == expected
    with RunStore.open_for_reading(store.folder) as reader:
        assert reader.trials(**wanted) == expected
        assert len(reader) == len(grid())
        assert all(trial in reader for trial in grid())
        assert kept_trial(2, task="task-a") not in reader


def test_weights_are_read_on_request(store):
    trial = kept_trial(0, weights=b"\x00\x01weights")
    store.add([trial, kept_trial(1)])
    assert [each.weights for each in store.trials()] == [None, None]
    assert store.kept_trials() == [trial]


def test_the_last_fact_counts(store):
    assert store.fact("seconds", "none") == "none"
    store.set_fact("seconds", [[["row", 2], 1.5]])
    store.set_fact("seconds", [[["row", 2], 2.5]])
    with RunStore.open_for_reading(store.folder) as reader:
        assert reader.fact("seconds") == [[["row", 2], 2.5]]
        for write in (lambda: reader.set_fact("seconds", []), lambda: reader.add([kept_trial()])):
            with pytest.raises(OptionError, match="open for reading"):
                write()


@pytest.mark.parametrize("again", [[kept_trial(0), kept_trial(1, seed=9)], [kept_trial(0), kept_trial(0)]])
def test_a_trial_is_stored_once_and_a_batch_completely_or_not_at_all(store, again):
    store.add([kept_trial(1)])
    with pytest.raises(OptionError, match="already has"):
        store.add(again)
    assert store.trials() == stored(store) == [kept_trial(1)]
    store.add([kept_trial(0), kept_trial(1, study="paper"), kept_trial(study="other", key={"dropout": -0.0})])
    assert kept_trial(study="other", key={"dropout": 0.0}) in store
    assert len(stored(store)) == 4


def test_an_interrupt_in_the_middle_of_a_batch_stores_nothing_of_it(store):
    class Interrupting(list):
        def __iter__(self):
            yield 0.5
            raise KeyboardInterrupt

    trial = kept_trial(index=1, curves=kept_trial().curves | {"val_acc": Interrupting([0.5, 0.5, 0.5])})
    with pytest.raises(KeyboardInterrupt):
        store.add([kept_trial(index=0), trial])
    assert store.trials() == stored(store) == []
    store.add([kept_trial(index=0)])


# ------------------------------------------------------------------------------------------------------ the same run


def test_the_config_and_where_trials_ran_come_back(store):
    store.add([kept_trial()])
    with RunStore.open_for_reading(store.folder) as reader:
        assert reader.config == CONFIG
        assert reader.created == store.created
        assert reader.environments == store.environments


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (CONFIG | {"trials": 3}, "trials changed from 10 to 3"),
        (CONFIG | {"trials": 10.0}, "trials changed from 10 to 10.0"),
        ({**CONFIG, "draw": "once"}, 'draw changed from nothing to "once"'),
        (CONFIG | {"tables": ["a", "c"]}, 'tables changed from ["a", "b"] to ["a", "c"]'),
        (
            CONFIG | {"trials": 3, "protocol": {"name": "full", "lr": {"dendritic": 0.05, "mlp": 0.001}}},
            'protocol.name changed from "paper" to "full", trials changed from 10 to 3',
        ),
    ],
)
def test_changed_settings_are_rejected_and_nothing_changes(store, config, changes):
    store.add([kept_trial()])
    store.close()
    before = (store.folder / STORE_FILE).read_bytes()
    for _ in range(2):  # a rejected run is not left locked
        with pytest.raises(FormatError) as error:
            RunStore.create_or_open(store.folder, config)
        assert str(error.value) == f"cannot resume: {changes}; use another --run folder"
    assert (store.folder / STORE_FILE).read_bytes() == before
    RunStore.create_or_open(store.folder, dict(reversed(CONFIG.items()))).close()


@pytest.mark.parametrize("package", ["dendritree", "torch"])
def test_another_version_is_rejected_but_can_be_read(store, package):
    store.add([kept_trial()])
    store.close()
    edit(store.folder, f"UPDATE environment SET {package} = '0.0.9'")
    with pytest.raises(FormatError, match=f"cannot resume: {package} changed from"):
        RunStore.create_or_open(store.folder, CONFIG)
    assert stored(store) == [kept_trial()]


# ---------------------------------------------------------------------------------------------------- not a run at all


def text_file(folder):
    (folder / STORE_FILE).write_bytes(b"No trials at all. " * 100)


def other_database(folder):
    edit(folder, "CREATE TABLE trial (x)")


def newer_format(folder):
    RunStore.create_or_open(folder, CONFIG).close()
    edit(folder, "PRAGMA user_version = 7")


@pytest.mark.parametrize("make", [text_file, other_database, newer_format])
def test_a_file_that_is_not_a_run_is_rejected_and_untouched(tmp_path, make):
    make(tmp_path)
    before = (tmp_path / STORE_FILE).read_bytes()
    for open_run in (lambda: RunStore.create_or_open(tmp_path, CONFIG), lambda: RunStore.open_for_reading(tmp_path)):
        with pytest.raises(FormatError, match=STORE_FILE):
            open_run()
    assert (tmp_path / STORE_FILE).read_bytes() == before


def test_a_folder_without_a_run_and_a_file_in_place_of_a_folder_are_rejected(tmp_path):
    with pytest.raises(FormatError, match=STORE_FILE):
        RunStore.open_for_reading(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run").write_text("here first")
    with pytest.raises(DendritreeError, match="cannot write to"):
        RunStore.create_or_open(tmp_path / "run", CONFIG)
