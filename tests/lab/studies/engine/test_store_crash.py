"""Writers that are killed at any moment, second writers, and readers who come while a writer is at work."""

import os
import random
import signal
import sqlite3
import time

import pytest
from made_trials import kept_trial
from warm import WarmProcess

from dendritree.errors import DendritreeError
from dendritree_lab.studies.engine import database
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore

CONFIG = {"trials": 10}
BATCH = 5

# Adds batch after batch, and tells after each; weights make a batch longer than SQLite's page cache.
WRITER = f"""
import sys, time
from made_trials import kept_trial
from dendritree_lab.studies.engine.store import RunStore

store = RunStore.create_or_open(sys.argv[1], {CONFIG})
print("open", flush=True)
start = len(store)
for first in range(start, start + 100_000, {BATCH}):
    weights = bytes(int(sys.argv[2]))
    store.add([kept_trial(index=first + i, epochs=100, weights=weights) for i in range({BATCH})])
    print(first + {BATCH}, flush=True)
    time.sleep(float(sys.argv[3]))
"""

# Stops in the middle of a transaction, with pages of it in the file already.
STOPPED = f"""
import sys, time
from made_trials import kept_trial
from dendritree_lab.studies.engine.schema import insert_trial
from dendritree_lab.studies.engine.store import RunStore

store = RunStore.create_or_open(sys.argv[1], {CONFIG})
store._database._connection.execute("PRAGMA cache_size = 5")
with store._database.transaction("IMMEDIATE") as connection:
    for index in range(100, 200):
        insert_trial(connection, kept_trial(index=index, epochs=100), environment=1, created="now")
    print("open", flush=True)
    time.sleep(60)
"""


def start(program, folder, *arguments):
    """A writer in another process, once it has the run open."""
    process = WarmProcess(program, folder, *arguments)
    assert process.stdout.readline() == "open\n"
    return process


def kill(process):
    """`kill -9`; return the last number the process told."""
    with process:
        process.send_signal(signal.SIGKILL)
        told = process.stdout.read().split()
    return int(told[-1]) if told else 0


def expected_trials(count):
    return [kept_trial(index=i, epochs=100) for i in range(count)]


@pytest.fixture
def folder(tmp_path):
    """A run with five trials, closed."""
    with RunStore.create_or_open(tmp_path / "run", CONFIG) as store:
        store.add(expected_trials(BATCH))
    return tmp_path / "run"


@pytest.fixture
def abandoned(folder):
    """The same run after a writer was killed in the middle of a transaction."""
    kill(start(STOPPED, folder))
    assert (folder / f"{STORE_FILE}-journal").stat().st_size > 0
    return folder


# ------------------------------------------------------------------------------------------------------------- killed


@pytest.mark.parametrize("weights", [0, 3_000_000], ids=["small", "large"])
def test_whenever_a_writer_is_killed_whole_batches_are_there_and_nothing_else(tmp_path, weights):
    moments = random.Random(weights)
    told = 0
    for _ in range(3):
        process = start(WRITER, tmp_path, weights, 0)
        told = told or int(process.stdout.readline())  # the first one comes to store a batch, however busy the machine
        time.sleep(moments.uniform(0.0, 0.2))
        told = max(told, kill(process))
        with RunStore.open_for_reading(tmp_path) as store:  # first as the killed writer left it
            seen = store.trials()
        with RunStore.create_or_open(tmp_path, CONFIG) as store:
            assert store.trials() == seen == expected_trials(len(seen))
        assert len(seen) % BATCH == 0
        assert told <= len(seen) <= told + BATCH, "all that was told, and at most the batch that was under way"


def test_what_a_killed_writer_left_open_is_undone(abandoned):
    with RunStore.create_or_open(abandoned, CONFIG) as store:
        assert store.trials() == expected_trials(BATCH)
        store.add([kept_trial(index=100)])
    assert not (abandoned / f"{STORE_FILE}-journal").exists()


def test_a_reader_sees_what_was_committed_and_undoes_nothing_itself(abandoned):
    before = {path.name: path.read_bytes() for path in abandoned.iterdir()}
    with RunStore.open_for_reading(abandoned) as store:
        assert store.trials() == expected_trials(BATCH)
        copy = store._database._scratch
    assert {path.name: path.read_bytes() for path in abandoned.iterdir()} == before
    assert not copy.exists()


def test_a_reader_who_meets_a_new_writer_at_that_moment_reads_what_it_made(abandoned):
    RunStore.create_or_open(abandoned, CONFIG).close()
    assert database._copy_at_one_moment(abandoned / STORE_FILE) is None, "the journal is gone: try again"
    with RunStore.open_for_reading(abandoned) as store:
        assert store.trials() == expected_trials(BATCH)
        assert store._database._scratch is None


def test_an_interrupt_in_the_middle_of_a_batch_stores_nothing_of_it(folder):
    class Interrupting(list):
        def __iter__(self):
            yield 0.5
            raise KeyboardInterrupt

    with RunStore.create_or_open(folder, CONFIG) as store:
        trial = kept_trial(index=101)
        trial.curves["val_acc"] = Interrupting([0.5, 0.5, 0.5])
        with pytest.raises(KeyboardInterrupt):
            store.add([kept_trial(index=100), trial])
        assert store.trials() == expected_trials(BATCH)
        store.add([kept_trial(index=100)])


# --------------------------------------------------------------------------------------------------- two at one run


def test_a_second_process_is_rejected_by_name_and_the_first_resumes(tmp_path):
    process = start(WRITER, tmp_path, 0, 0)
    try:
        with pytest.raises(DendritreeError) as refusal:
            RunStore.create_or_open(tmp_path, CONFIG)
        rule = "a folder takes one writer at a time"
        assert str(refusal.value) == f"{rule}: {tmp_path} is in use by process {process.pid}"
    finally:
        told = kill(process)
    with RunStore.create_or_open(tmp_path, CONFIG) as store:  # the lock died with its holder
        assert len(store) >= told


def test_a_second_writer_in_one_process_is_refused_until_the_first_closes(folder):
    with (
        RunStore.create_or_open(folder, CONFIG),
        pytest.raises(DendritreeError, match=rf"is in use by process {os.getpid()}$"),
    ):
        RunStore.create_or_open(folder, CONFIG)
    RunStore.create_or_open(folder, CONFIG).close()


def test_a_refused_run_is_not_left_locked(folder):
    for _ in range(2):
        with pytest.raises(DendritreeError, match="trials: 10 -> 3"):
            RunStore.create_or_open(folder, {"trials": 3})


def test_readers_see_whole_batches_while_a_writer_is_at_work(tmp_path):
    process = start(WRITER, tmp_path, 0, 0.02)  # or the reader, who reads everything, falls ever further behind
    seen = []
    try:
        while len(set(seen)) < 5 and len(seen) < 100:
            with RunStore.open_for_reading(tmp_path) as store:
                trials = store.trials()
                assert trials == expected_trials(len(trials))
                seen.append(len(trials))
            time.sleep(0.02)
    finally:
        kill(process)
    assert seen == sorted(seen)
    assert len(set(seen)) > 1
    assert all(count % BATCH == 0 for count in seen)


def test_one_reader_reads_on_while_the_writer_adds(folder):
    with RunStore.create_or_open(folder, CONFIG) as writer, RunStore.open_for_reading(folder) as reader:
        assert len(reader) == BATCH
        writer.add([kept_trial(index=BATCH, epochs=100)])
        assert reader.trials() == writer.trials() == expected_trials(BATCH + 1)


def test_a_file_held_by_another_program_is_waited_for_and_then_refused(folder, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    other = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
    with RunStore.create_or_open(folder, CONFIG) as store:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DendritreeError, match=r"^a run file must be free within .*is locked by another program$"):
            store.add([kept_trial(index=100)])
        other.execute("ROLLBACK")
        store.add([kept_trial(index=100)])
    other.close()
