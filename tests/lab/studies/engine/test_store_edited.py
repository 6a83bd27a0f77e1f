"""A run whose cells somebody edited by hand: it is read, or one sentence names the file and what is wrong."""

import contextlib
import json
import shutil
import sqlite3

import pytest
from comparison_cases import CONFIG, around, made_up_cell
from made_trials import MLP, TREE, kept_trial, made_trial

from dendritree.errors import DendritreeError, FormatError
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.fair.comparison_report import write_comparison
from dendritree_lab.studies.paper.records import TrialRecord
from dendritree_lab.studies.paper.reproduction import REFERENCE, RunPlan, reference_seconds_of

WRONG = [None, -1, 1e308, float("inf"), "text", b"\xff\x00", "[]", "[" * 5000]


def edit(folder, sql, *values):
    connection = sqlite3.connect(folder / STORE_FILE)
    with contextlib.closing(connection), connection:
        assert connection.execute(sql, values).rowcount == 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with two trials and a fact, closed."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with RunStore.create_or_open(folder, {"trials": 10}) as store:
        store.add([kept_trial(0, scores={"test_acc": 0.5}, weights=b"bytes"), kept_trial(1)])
        store.set_fact("seconds", [1.5])
    return folder


def cells(folder):
    with contextlib.closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                yield table, column


def test_any_cell_may_be_anything(run, tmp_path):
    """Whatever can be read is read; whatever cannot be understood is a `FormatError`."""
    rejected = set()
    for table, column in cells(run):
        for value in WRONG:
            folder = shutil.copytree(run, tmp_path / "run", dirs_exist_ok=True)
            key = (
                "rowid"
                if table not in ("epoch", "score")
                else "(trial, name)"
                if table == "score"
                else "(trial, epoch)"
            )
            first = f"SELECT {key.strip('()')} FROM {table} LIMIT 1"
            try:
                edit(folder, f'UPDATE {table} SET "{column}" = ? WHERE {key} = ({first})', value)
            except sqlite3.Error:  # the table itself rejects it
                continue
            with RunStore.open_for_reading(folder) as store:
                try:
                    assert len(store) == 2
                    assert isinstance(store.config, dict)
                    _ = store.environments, store.created, store.read_fact("seconds", str), store.present()
                    store.trials(with_weights=True)
                    store.export(tmp_path / "data")
                except FormatError as error:
                    rejected.add((table, column))
                    message = str(error)
                    known = f"a run must be as dendritree wrote it: {folder / STORE_FILE} ("
                    assert message.startswith(known)
                    assert len(message.splitlines()) == 1
    assert {
        ("run", "config"),
        ("trial", "key"),
        ("trial", "config"),
        ("epoch", "val_loss"),
        ("score", "value"),
    } <= rejected


# ------------------------------------------------------------------------------------------------- what studies read


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "paper"
    with RunStore.create_or_open(folder, RunPlan.make(["multiclass"]).config) as store:
        store.add([made_trial(row, 0).as_trial() for row in (TREE, MLP)])
        store.set_fact(REFERENCE, [])
    return folder


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "comparison"
    with RunStore.create_or_open(folder, CONFIG) as store:
        for family in ("tree", "dense"):
            store.add(made_up_cell("digits", family, 1000, around(0.9, seeds=2)))
    return folder


def edit_json(folder, column, **changes):
    """Change the key or the config of the last trial."""
    with contextlib.closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        last, text = connection.execute(f"SELECT id, {column} FROM trial ORDER BY id DESC").fetchone()
    edited = {name: value for name, value in {**json.loads(text), **changes}.items() if value is not ...}
    edit(folder, f"UPDATE trial SET {column} = ? WHERE id = ?", json.dumps(edited), last)


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("key", {"iteration": "x"}),
        ("key", {"iteration": ...}),
        ("key", {"mid_layer": ...}),
        ("key", {"dropout": "x"}),
        ("key", {"table": 3}),
        ("key", {"other": 1}),
        ("config", {"dataset": "emnist"}),
        ("config", {"lr": "x"}),
        ("config", {"lr": None}),
        ("config", {"arguments": 3}),
        ("config", {"arguments": {"mapping": {"device": "meta"}}}),
        ("config", {"arguments": ...}),
    ],
    ids=str,
)
def test_a_record_of_the_paper_that_is_none_is_one_line(paper, column, changes, tmp_path, call):
    folder = shutil.copytree(paper, tmp_path / "run")
    edit_json(folder, column, **changes)
    with RunStore.open_for_reading(folder) as store, pytest.raises(FormatError, match="must be as dendritree wrote it"):
        store.read_trials(TrialRecord.of)
    status, out, errors = call("report", folder)
    assert (status, out, errors.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("fact", ["3", "{}x", "[1]", '{"a": 1}', '[[["a"], 1]]', "null", "[" * 5000])
def test_a_fact_that_is_none_is_rejected(paper, fact, tmp_path):
    folder = shutil.copytree(paper, tmp_path / "run")
    edit(folder, "UPDATE fact SET value = ?", fact)
    with RunStore.open_for_reading(folder) as store, pytest.raises(FormatError, match="must be as dendritree wrote it"):
        reference_seconds_of(store)


@pytest.mark.parametrize(
    "fact", ["3", "[1]", '{"digits": 3}', '{"digits": {}}', '{"digits:128": {"classes": 2}}', "null"]
)
def test_sizes_of_data_that_are_none_are_rejected(comparison, fact, tmp_path):
    folder = shutil.copytree(comparison, tmp_path / "run")
    edit(folder, "INSERT OR REPLACE INTO fact VALUES ('tasks', ?)", fact)
    with pytest.raises(FormatError, match="must be as dendritree wrote it"):
        write_comparison(folder)


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("key", {"phase": "warm-up"}),
        ("key", {"phase": ...}),
        ("key", {"task": "emnist"}),
        ("key", {"budget": "x"}),
        ("key", {"family": "oak"}),
        ("key", {"trial": "x"}),
        ("config", {"network": 3}),
        ("config", {"arguments": []}),
        ("config", {"lr": "x"}),
        ("config", {"other": 1}),
    ],
    ids=str,
)
def test_a_trial_of_a_comparison_that_is_none_is_rejected(comparison, column, changes, tmp_path):
    folder = shutil.copytree(comparison, tmp_path / "run")
    edit_json(folder, column, **changes)
    with pytest.raises(FormatError, match="a run must be as dendritree wrote it"):
        write_comparison(folder)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("UPDATE run SET config = ?", [json.dumps(CONFIG | {"learning_rates": 3})]),
        ("UPDATE run SET config = ?", [json.dumps(CONFIG | {"trials": "x"})]),
        ("UPDATE run SET config = ?", [json.dumps({"comparison": 1})]),
        ("UPDATE trial SET parameters = 0 WHERE id = 3", []),
        ("DELETE FROM score WHERE name = 'test_acc' AND trial = 3", []),
    ],
)
def test_a_comparison_without_what_its_report_needs_is_rejected(comparison, sql, values, tmp_path):
    folder = shutil.copytree(comparison, tmp_path / "run")
    edit(folder, sql, *values)
    with pytest.raises(DendritreeError, match="must "):
        write_comparison(folder)


def test_a_stored_choice_that_builds_no_model_is_rejected(comparison, tmp_path):
    folder = shutil.copytree(comparison, tmp_path / "run")
    for trial in (3, 4, 7, 8):  # those that were evaluated
        edit(
            folder, "UPDATE trial SET config = json_set(config, '$.arguments.mapping.hidden', 'x') WHERE id = ?", trial
        )
    with pytest.raises(FormatError, match="a stored choice must build its model"):
        write_comparison(folder)


def test_a_comparison_is_exported_with_the_ids_of_its_trials_and_their_keys(comparison, tmp_path):
    """`trial` is the number of a trial in its cell too: that one has a column of another name."""
    with RunStore.open_for_reading(comparison) as store:
        trials, history = (path.read_text(encoding="utf-8").splitlines() for path in store.export(tmp_path))
    assert trials[0].startswith("trial,study,phase,task,budget,family,key_trial,seed,parameters,seconds")
    assert sorted(line.split(",")[0] for line in trials[1:]) == [str(id_) for id_ in range(1, 9)]
    assert {line.split(",")[6] for line in trials[1:]} == {"0", "1"}
    assert len(history) == 9
