"""Runs that must not be resumed, full disks, folders that cannot be written: one clear line, and nothing lost."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest
from made_trials import kept_trial

from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore

CONFIG = {"trials": 10, "protocol": {"name": "paper", "lr": {"dendritic": 0.05, "mlp": 0.001}}, "tables": ["a", "b"]}
NOBODY = 65534


@pytest.fixture
def folder(tmp_path):
    """A run with one trial, closed."""
    with RunStore.create_or_open(tmp_path / "run", CONFIG) as store:
        store.add([kept_trial()])
    return tmp_path / "run"


def change(folder, sql):
    connection = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
    connection.execute(sql)
    connection.close()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextlib.contextmanager
def as_nobody():
    """Without root's right to write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


# ------------------------------------------------------------------------------------------------------- another run


@pytest.mark.parametrize(
    ("config", "difference"),
    [
        (CONFIG | {"trials": 3}, "trials: 10 -> 3"),
        (CONFIG | {"trials": 10.0}, "trials: 10 -> 10.0"),
        ({**CONFIG, "draw": "once"}, "draw: absent -> 'once'"),
        ({k: v for k, v in CONFIG.items() if k != "trials"}, "trials: 10 -> absent"),
        (CONFIG | {"tables": ["a", "c", "d"]}, "tables.1: 'b' -> 'c', tables.2: absent -> 'd'"),
        (
            CONFIG | {"trials": 3, "protocol": {"name": "full", "lr": {"dendritic": 0.05, "mlp": 0.1}}},
            "protocol.lr.mlp: 0.001 -> 0.1, protocol.name: 'paper' -> 'full', trials: 10 -> 3",
        ),
    ],
)
def test_another_config_is_refused_key_by_key_and_nothing_changes(folder, config, difference):
    before = contents(folder)
    with pytest.raises(FormatError) as refusal:
        RunStore.create_or_open(folder, config)
    assert (
        str(refusal.value) == f"a run resumes with the settings it was started with: {folder} differs in {difference}"
    )
    assert contents(folder) == before
    RunStore.create_or_open(folder, CONFIG).close()


def test_many_differences_are_counted_not_listed(folder):
    with pytest.raises(FormatError, match=r"k11: absent -> 11, and 5 more$"):
        RunStore.create_or_open(folder, CONFIG | {f"k{i:02}": i for i in range(17)})


@pytest.mark.parametrize("package", ["dendritree", "torch"])
def test_another_version_is_refused(folder, package):
    change(folder, f"UPDATE environment SET {package} = '0.0.9'")
    before = contents(folder)
    with pytest.raises(FormatError, match=rf"differs in versions\.{package}: '0\.0\.9' -> '[^']+'$"):
        RunStore.create_or_open(folder, CONFIG)
    assert contents(folder) == before
    with RunStore.open_for_reading(folder) as store:  # a report can still be made
        assert store.trials() == [kept_trial()]


def test_a_run_of_the_first_format_says_what_to_do(folder):
    change(folder, "PRAGMA user_version = 1")
    with pytest.raises(
        FormatError, match=r"has 1, written by an older dendritree: report it with that version, or run"
    ):
        RunStore.open_for_reading(folder)


def test_another_format_is_refused(folder):
    change(folder, "PRAGMA user_version = 7")
    for open_run in (lambda: RunStore.create_or_open(folder, CONFIG), lambda: RunStore.open_for_reading(folder)):
        with pytest.raises(FormatError, match=r"must have store format 2: .* has 7, written by a newer dendritree"):
            open_run()


@pytest.mark.parametrize("config", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}])
def test_a_config_that_is_no_json_is_refused_before_anything_is_made(tmp_path, config):
    with pytest.raises(OptionError, match=r"^config must be finite JSON values: "):
        RunStore.create_or_open(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------------------------------------- not a run at all


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"No trials at all. " * 100, r"a run must be a whole SQLite file: .* is not one"),
        (b"", r"a run must be an SQLite file that dendritree made: .* was not"),
    ],
    ids=["text", "empty"],
)
def test_a_file_that_is_no_run_is_refused_and_left_alone(tmp_path, data, message):
    (tmp_path / STORE_FILE).write_bytes(data)
    for open_run in (lambda: RunStore.create_or_open(tmp_path, CONFIG), lambda: RunStore.open_for_reading(tmp_path)):
        with pytest.raises(FormatError, match=message):
            open_run()
    assert (tmp_path / STORE_FILE).read_bytes() == data


def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path):
    change(tmp_path, "CREATE TABLE trial (x)")
    before = (tmp_path / STORE_FILE).read_bytes()
    with pytest.raises(FormatError, match=r"that dendritree made: .* was not"):
        RunStore.create_or_open(tmp_path, CONFIG)
    assert (tmp_path / STORE_FILE).read_bytes() == before


def test_a_truncated_run_is_refused(folder):
    data = (folder / STORE_FILE).read_bytes()
    (folder / STORE_FILE).write_bytes(data[: len(data) // 2])
    with (
        pytest.raises(FormatError, match="a run must be a whole SQLite file"),
        RunStore.open_for_reading(folder) as store,
    ):
        store.trials()


def test_a_run_that_is_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / STORE_FILE).symlink_to(STORE_FILE)
    with pytest.raises(DendritreeError):
        RunStore.open_for_reading(tmp_path)


def test_a_folder_without_a_run_has_nothing_to_read(tmp_path):
    with pytest.raises(FormatError, match=r"^a run folder must hold trials\.sqlite: none in /.*"):
        RunStore.open_for_reading(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("here first")
    with pytest.raises(DendritreeError, match=r"^a run folder must be writable: .*/run \(File exists\)$"):
        RunStore.create_or_open(tmp_path / "run", CONFIG)


def test_what_a_process_killed_while_creating_left_behind_is_no_obstacle(tmp_path):
    (tmp_path / f".{STORE_FILE}.new").write_bytes(b"half of a")
    (tmp_path / f".{STORE_FILE}.new-journal").write_bytes(b"jour")
    RunStore.create_or_open(tmp_path, CONFIG).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trials.lock", STORE_FILE]


# ---------------------------------------------------------------------------------------------------------- disk full


def test_when_the_file_cannot_grow_the_batch_is_refused_and_the_rest_stays(folder):
    with RunStore.create_or_open(folder, CONFIG) as store:
        (pages,) = store._database._connection.execute("PRAGMA page_count").fetchone()
        store._database._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            DendritreeError, match=r"^the disk must have room for the trials: .*, the last trials were not stored$"
        ):
            store.add([kept_trial(index=i, epochs=100) for i in range(1, 30)])
        assert store.trials() == [kept_trial()]
        store._database._connection.execute("PRAGMA max_page_count = 100000")
        store.add([kept_trial(index=1)])  # the store works again once there is room


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 200 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk takes root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_on_a_full_disk_all_that_was_committed_stays(small_disk):
    with RunStore.create_or_open(small_disk / "run", CONFIG) as store:
        with pytest.raises(DendritreeError, match=r"^the disk must have room for the trials: "):  # noqa: PT012
            for index in range(1000):
                store.add([kept_trial(index=index, epochs=100)])
        stored = len(store)
        assert stored == index > 0
        assert store.trials() == [kept_trial(index=i, epochs=100) for i in range(stored)]
    with RunStore.create_or_open(small_disk / "run", CONFIG) as store:  # and a new process finds the same
        assert len(store) == stored


def test_a_disk_without_room_for_a_run_is_refused(small_disk):
    (small_disk / "filler").write_bytes(b"x" * 190_000)
    with pytest.raises(DendritreeError, match=r"^the disk must have room for the trials: |No space left on device"):
        RunStore.create_or_open(small_disk / "run", CONFIG)
    (small_disk / "filler").unlink()
    RunStore.create_or_open(small_disk / "run", CONFIG).close()


# ---------------------------------------------------------------------------------------------------------- read-only


@pytest.fixture
def read_only(folder):
    """The run in a folder that everybody may read, and nobody write to. Pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        run = shutil.copytree(folder, place / "run")
        for path in (*run.iterdir(), run):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield run
        run.chmod(0o755)


def test_a_read_only_run_can_be_read(read_only):
    before = contents(read_only)
    with as_nobody(), RunStore.open_for_reading(read_only) as store:
        assert store.trials() == [kept_trial()]
        assert store.config == CONFIG
    assert contents(read_only) == before


def test_a_read_only_run_cannot_go_on_and_says_why(read_only):
    rule = re.escape(f"a run folder must be writable: {read_only} (Permission denied)")
    with as_nobody(), pytest.raises(DendritreeError, match=f"^{rule}$"):
        RunStore.create_or_open(read_only, CONFIG)


def test_a_folder_that_cannot_be_made_says_why(read_only):
    with (
        as_nobody(),
        pytest.raises(DendritreeError, match=r"^a run folder must be writable: .*new \(Permission denied\)$"),
    ):
        RunStore.create_or_open(read_only / "new", CONFIG)


def test_a_read_only_file_in_a_writable_folder_says_so_too(read_only):
    read_only.chmod(0o777)
    (read_only / "trials.lock").chmod(0o666)
    with (
        as_nobody(),
        pytest.raises(DendritreeError, match=r"^a run folder must be writable: .*trials\.sqlite cannot be"),
    ):
        RunStore.create_or_open(read_only, CONFIG)


def test_a_run_that_may_not_be_read_says_so(read_only):
    (read_only / STORE_FILE).chmod(0)
    with as_nobody(), pytest.raises(DendritreeError, match=r"^a run must be readable, .*trials\.sqlite"):
        RunStore.open_for_reading(read_only)
