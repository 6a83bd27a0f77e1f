"""What a run file says beside the trials: machines, config, weights, facts."""

import sqlite3

import pytest
from made_trials import kept_trial

from dendritree.errors import DendritreeError, OptionError
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore


@pytest.fixture
def store(tmp_path):
    with RunStore.create_or_open(tmp_path / "run", {"trials": 10}) as store:
        yield store


def query(store, sql):
    """Read the file as any other program would."""
    connection = sqlite3.connect(store.folder / STORE_FILE)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_trial_tells_when_and_where_it_was_run(store):
    store.add([kept_trial()])
    [(created, machine, torch_version)] = query(
        store, "SELECT created, machine, torch FROM trial JOIN environment ON environment.id = trial.environment"
    )
    [environment] = store.environments
    assert (machine, torch_version) == (environment.machine, environment.torch)
    assert created >= store.created
    assert created.endswith("+00:00")


def test_going_on_elsewhere_is_remembered_and_coming_back_is_not_doubled(store):
    folder = store.folder
    store.close()
    with sqlite3.connect(folder / STORE_FILE) as connection:
        connection.execute("UPDATE environment SET cpu = 'Another CPU', numpy = '1.26.0', \"commit\" = NULL")
    connection.close()
    for _ in range(3):
        with RunStore.create_or_open(folder, {"trials": 10}) as again:
            assert [environment.cpu == "Another CPU" for environment in again.environments] == [True, False]


def test_the_config_comes_back(tmp_path):
    config = {"b": [1, 2.5, {"ü": None}], "a": {"x": True}}
    RunStore.create_or_open(tmp_path, config).close()
    RunStore.create_or_open(tmp_path, dict(reversed(config.items()))).close()
    with RunStore.open_for_reading(tmp_path) as store:
        assert store.config == config


def test_weights_are_kept_apart_and_given_on_request(store):
    trial = kept_trial(0, weights=b"\x00\x01weights")
    store.add([trial, kept_trial(1)])
    assert [t.weights for t in store.trials()] == [None, None]
    assert [t.weights for t in store.trials(with_weights=True)] == [trial.weights, None]


def test_a_store_opened_for_reading_takes_no_trials(store):
    with (
        RunStore.open_for_reading(store.folder) as reader,
        pytest.raises(OptionError, match="a store must be open for writing to store anything"),
    ):
        reader.add([kept_trial()])


def test_a_closed_store_says_so(store):
    store.close()
    store.close()
    with pytest.raises(DendritreeError, match=r"a run file must be open, .*closed database"):
        len(store)


def test_facts_are_kept_and_the_last_one_counts(store):
    assert store.read_fact("seconds", lambda kept: kept) is None
    store.set_fact("seconds", [[["row", 2], 1.5]])
    store.set_fact("seconds", [[["row", 2], 2.5]])
    with RunStore.open_for_reading(store.folder) as reader:
        assert reader.read_fact("seconds", list) == [[["row", 2], 2.5]]
        with pytest.raises(OptionError, match="a store must be open for writing to store anything"):
            reader.set_fact("seconds", [])
