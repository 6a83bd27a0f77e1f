"""Writers that are killed at any moment, second writers, and readers who come while a writer is at work."""

import random
import signal
import time

import pytest
from made_trials import kept_trial
from warm import WarmProcess

from dendritree.errors import DendritreeError
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore

CONFIG = {"trials": 10}
BATCH = 5

# Adds batch after batch, and prints their number after each; weights make a batch longer than SQLite's page cache.
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
from dendritree_lab.studies.engine.store import RunStore, _insert

store = RunStore.create_or_open(sys.argv[1], {CONFIG})
store._connection.execute("PRAGMA cache_size = 5")
with store._transaction() as connection:
    for index in range(100, 200):
        _insert(connection, kept_trial(index=index, epochs=100), 1, "now")
    print("open", flush=True)
    time.sleep(60)
"""


def start(program, folder, *arguments):
    """A writer in another process, once it has the run open."""
    process = WarmProcess(program, folder, *arguments)
    assert process.stdout.readline() == "open\n"
    return process


def kill(process):
    """`kill -9`; return the last number the process printed."""
    with process:
        process.send_signal(signal.SIGKILL)
        numbers = process.stdout.read().split()
    return int(numbers[-1]) if numbers else 0


def expected_trials(count):
    return [kept_trial(index=i, epochs=100) for i in range(count)]


@pytest.mark.parametrize("weights", [0, 3_000_000], ids=["small", "large"])
def test_a_run_resumes_after_its_writer_was_killed_with_whole_batches(tmp_path, weights):
    moments = random.Random(weights)
    printed = 0
    for _ in range(3):
        process = start(WRITER, tmp_path, weights, 0)
        printed = printed or int(process.stdout.readline())  # the first one stores a batch, however busy the machine
        time.sleep(moments.uniform(0.0, 0.2))
        printed = max(printed, kill(process))
        with RunStore.create_or_open(tmp_path, CONFIG) as store:  # the lock died with its holder
            trials = store.trials()
        assert trials == expected_trials(len(trials))
        assert len(trials) % BATCH == 0
        assert printed <= len(trials) <= printed + BATCH, "at most the batch that was under way besides"


@pytest.mark.parametrize("reads_first", [False, True])
def test_an_unfinished_transaction_is_undone(tmp_path, reads_first):
    with RunStore.create_or_open(tmp_path, CONFIG) as store:
        store.add(expected_trials(BATCH))
    kill(start(STOPPED, tmp_path))
    assert (tmp_path / f"{STORE_FILE}-journal").stat().st_size > 0
    if reads_first:
        with RunStore.open_for_reading(tmp_path) as store:
            assert store.trials() == expected_trials(BATCH)
    with RunStore.create_or_open(tmp_path, CONFIG) as store:
        assert store.trials() == expected_trials(BATCH)
        store.add([kept_trial(index=100)])


def test_one_process_writes_at_a_time_and_readers_see_whole_batches(tmp_path):
    process = start(WRITER, tmp_path, 0, 0.02)  # or the reader, who reads everything, falls ever further behind
    counts = []
    try:
        with pytest.raises(DendritreeError, match="another process is writing"):
            RunStore.create_or_open(tmp_path, CONFIG)
        while len(set(counts)) < 3 and len(counts) < 100:
            with RunStore.open_for_reading(tmp_path) as store:
                trials = store.trials()
                assert trials == expected_trials(len(trials))
                counts.append(len(trials))
            time.sleep(0.02)
    finally:
        kill(process)
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert all(count % BATCH == 0 for count in counts)
