"""What a run file says beside the trials: histories as the authors kept them, machines, config, weights."""

import sqlite3

import pytest
from made_trials import MLP, TREE, made_trial

from dendritree.errors import DendritreeError, OptionError
from dendritree.studies.engine.trial import CURVES
from dendritree.studies.engine.store import STORE_FILE, RunStore

AUTHORS_COLUMNS = [
    *("epoch", "train_loss", "val_loss", "train_acc", "val_acc", "iteration", "branching", "mid_layer"),
    *("dropout", "dataset", "network", "lr"),
]


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


def test_the_history_has_the_authors_columns(store):
    store.add([made_trial(TREE, 4, lr=0.05), made_trial(MLP, 5)])
    columns = [name for _, name, *_ in query(store, "PRAGMA table_info(history)")]
    assert columns == ["trial", *AUTHORS_COLUMNS]
    tree, mlp = made_trial(TREE, 4).history, made_trial(MLP, 5).history
    assert query(store, f"SELECT {', '.join(AUTHORS_COLUMNS)} FROM history WHERE epoch = 1 ORDER BY network DESC") == [
        (1, *(mlp[c][1] for c in CURVES), 5, None, 11, 0.0, "mnist", "mlp", 0.001),
        (1, *(tree[c][1] for c in CURVES), 4, 32, None, 0.0, "mnist", "mln", 0.05),
    ]


def test_a_trial_tells_when_and_where_it_was_run(store):
    store.add([made_trial()])
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
    trial = made_trial(TREE, 0, weights=b"\x00\x01weights")
    store.add([trial, made_trial(TREE, 1), made_trial(MLP)])
    assert store.weights(TREE) == trial.weights
    assert [t.weights for t in store.records()] == [None, None, None]
    assert [t.weights for t in store.records(with_weights=True)] == [trial.weights, None, None]
    with pytest.raises(OptionError, match=r"weights must be kept of exactly one trial of a row: .* MLP h=11 none kept"):
        store.weights(MLP)


def test_weights_of_two_protocols_are_told_apart(store):
    store.add([made_trial(TREE, protocol=protocol, weights=protocol.encode()) for protocol in ("paper", "full")])
    assert store.weights(TREE, "full") == b"full"
    with pytest.raises(OptionError, match=r"exactly one trial of a row: .* dendritic b=32 kept under full and paper"):
        store.weights(TREE)


def test_a_store_opened_for_reading_takes_no_trials(store):
    with (
        RunStore.open_for_reading(store.folder) as reader,
        pytest.raises(OptionError, match="a store opened for reading takes no trials"),
    ):
        reader.add([made_trial()])


def test_a_closed_store_says_so(store):
    store.close()
    store.close()
    with pytest.raises(DendritreeError, match=r"a run file must be open, .*closed database"):
        len(store)


def test_reference_times_are_kept_and_the_last_one_counts(store):
    store.set_reference_seconds({TREE: 1.5, MLP: 0.1})
    store.set_reference_seconds({TREE: 2.5})
    with RunStore.open_for_reading(store.folder) as reader:
        assert reader.reference_seconds == {TREE: 2.5, MLP: 0.1}
        with pytest.raises(OptionError, match="a store opened for reading takes no times"):
            reader.set_reference_seconds({TREE: 3.5})
