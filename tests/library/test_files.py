"""Files that appear whole or not at all, and the lock."""

import os
import stat
import sys
import threading
from pathlib import Path

import pytest
from full_disk import largest_file

from dendritree.errors import DendritreeError
from dendritree.files import Lock, followed, scratch_beside, unfinished_files, whole_file, write_whole

OPEN_FILES = Path("/proc/self/fd")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_after(path, error):
    path.write_text("half")
    raise error


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_file_replaces_the_old_one_leaves_nothing_else_and_has_the_mode_of_the_umask(tmp_path, mask, mode):
    (tmp_path / "notes").write_bytes(b"old")
    before = os.umask(mask)
    try:
        assert write_whole(tmp_path / "notes", "n\u00e9w") == tmp_path / "notes"
    finally:
        os.umask(before)
    assert names(tmp_path) == ["notes"]
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "n\u00e9w"
    assert (tmp_path / "notes").stat().st_mode & 0o777 == mode


def test_a_file_that_does_not_fit_leaves_the_old_one_and_no_rest(tmp_path):
    (tmp_path / "large").write_bytes(b"old")
    with largest_file(1000), pytest.raises(DendritreeError, match=r"^a picture must be writable: .*large \(File too"):
        write_whole(tmp_path / "large", bytes(5000), "a picture")
    assert names(tmp_path) == ["large"]
    assert (tmp_path / "large").read_bytes() == b"old"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_in_the_block_leaves_the_old_file_and_goes_on_its_way(tmp_path, error):
    (tmp_path / "notes").write_bytes(b"old")
    with pytest.raises(error), whole_file(tmp_path / "notes") as scratch:
        fail_after(scratch, error)
    assert names(tmp_path) == ["notes"]
    assert (tmp_path / "notes").read_bytes() == b"old"


def test_folders_are_made_and_a_place_that_cannot_be_written_is_named(tmp_path):
    write_whole(tmp_path / "a" / "b" / "notes", b"all")
    with pytest.raises(DendritreeError, match=r"^a file must be writable: .*notes/more \(File exists\)$"):
        write_whole(tmp_path / "a" / "b" / "notes" / "more", b"all")
    with pytest.raises(DendritreeError, match=r"^a file must be writable: .*/b \(Is a directory\)$"):
        write_whole(tmp_path / "a" / "b", b"all")
    assert names(tmp_path / "a") == ["b"]


def test_a_link_is_followed_and_stays_also_one_to_nothing_yet(tmp_path):
    (tmp_path / "notes").symlink_to("real/notes")
    for content in (b"one", b"two"):
        write_whole(tmp_path / "notes", content)
        assert (tmp_path / "notes").is_symlink()
        assert (tmp_path / "real" / "notes").read_bytes() == content
    assert names(tmp_path / "real") == ["notes"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove the folder that a process is in")
def test_a_current_folder_that_was_removed_is_said(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for path in (".", "notes.txt"):
        with pytest.raises(DendritreeError, match="the current folder must exist: it was removed"):
            followed(path)
    assert followed(tmp_path) == tmp_path.resolve()


def test_unfinished_files_are_told_from_a_users_hidden_ones(tmp_path):
    scratch = scratch_beside(tmp_path / "notes.txt")
    for path in (scratch, tmp_path / ".notes.txt.swp", tmp_path / ".hidden", tmp_path / "notes.txt"):
        path.touch()
    assert unfinished_files(tmp_path) == unfinished_files(tmp_path, "notes.txt") == [scratch]
    assert unfinished_files(tmp_path, "notes") == unfinished_files(tmp_path / "nowhere") == []


# ------------------------------------------------------------------------------------------------------------- lock


def test_a_lock_waits_for_its_holder_and_says_who_that_is(tmp_path):
    first, said, done = Lock(tmp_path / "lock"), [], threading.Event()

    def wait():
        with Lock(tmp_path / "lock", on_wait=said.append) as second:
            assert second.held
            done.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not done.wait(0.1)
    first.release()
    first.release()
    waiting.join(timeout=30)
    assert (done.is_set(), said) == (True, [f"process {os.getpid()}"])
    assert names(tmp_path) == ["lock"]


def test_a_lock_waits_as_long_as_it_has_patience(tmp_path):
    with Lock(tmp_path / "lock"), pytest.raises(DendritreeError, match=rf"in use by process {os.getpid()}$"):
        Lock(tmp_path / "lock", on_wait=lambda _: None, patience=0.05)


def test_a_lock_whose_file_goes_is_held_by_one_at_a_time(tmp_path):
    """Many who wait for one file: each makes, locks and removes it, and nobody locks a file that is gone."""
    inside, most = [], []

    def work():
        for _ in range(20):
            with Lock(tmp_path / "lock", on_wait=lambda _: None, stays=False) as lock:
                assert lock.held
                inside.append(None)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert most == [1] * 80
    assert names(tmp_path) == []


def test_a_child_that_was_forked_does_not_keep_a_released_lock(tmp_path):
    first = Lock(tmp_path / "lock")
    copy = os.dup(first._descriptor)  # what a fork leaves to the child
    first.release()
    Lock(tmp_path / "lock").release()
    os.close(copy)


def test_without_locks_one_who_would_wait_goes_on_and_one_who_must_be_alone_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # and Windows's own module is not here either
    with Lock(tmp_path / "lock", on_wait=print) as lock:
        assert not lock.held
    with pytest.raises(DendritreeError, match=r"^a folder with one writer needs file locks: .* \(.*msvcrt.*\)$"):
        Lock(tmp_path / "lock")


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="open files are counted in /proc")
def test_a_lock_that_is_rejected_leaves_no_file_open(tmp_path):
    with Lock(tmp_path / "lock"):
        before = len(list(OPEN_FILES.iterdir()))
        with pytest.raises(DendritreeError, match="one writer at a time"):
            Lock(tmp_path / "lock")
        assert len(list(OPEN_FILES.iterdir())) == before


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_lock_that_is_not_a_plain_file_is_held_without_a_name_and_released(kind, tmp_path):
    path = tmp_path / "run.lock"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/null")
    for _ in range(2):
        with Lock(path, on_wait=lambda _: None, patience=0) as lock:
            assert lock.held


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a device, or replace one"
)
def test_a_device_is_not_replaced(tmp_path):
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with pytest.raises(DendritreeError, match="notes must not be a device"):
        write_whole(device, "text", "notes")
    assert device.is_char_device()
