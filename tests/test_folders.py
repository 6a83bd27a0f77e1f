"""The one rule of folders: one writer, our files together, files of others where they are, links followed."""

import itertools
import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from full_disk import files_under, largest_file
from killed import killed_at

from dendritree.errors import DendritreeError
from dendritree.folders import DECIDED, files_of_others, files_together, finish_changes, reserved

OURS = ("config", "csv/scores", "rest")


def write(folder, content, ours=OURS, **more):
    """Change a folder to have one content in all files of ours."""
    with reserved(folder) as place, files_together(place, ours) as fresh:
        for name, text in {"config": content, "csv/scores": content, **more}.items():
            (fresh / name).parent.mkdir(exist_ok=True)
            (fresh / name).write_text(text)


def fail_after(path, error):
    path.write_text("half")
    raise error


def texts(folder):
    return {name: content.decode() for name, content in files_under(folder).items() if content is not None}


@pytest.fixture
def folder(tmp_path):
    """Files of ours, one of them not written any more, among files of others."""
    place = tmp_path / "model"
    for name, text in (("config", "old"), ("csv/scores", "old"), ("rest", "old"), ("csv/mine", "me"), ("me", "me")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


MINE = {"csv/mine": "me", "me": "me"}
OLD = {"config": "old", "csv/scores": "old", "rest": "old", **MINE}
NEW = {"config": "new", "csv/scores": "new", **MINE}


def test_our_files_change_and_those_of_others_stay(folder):
    before = (folder / "me").stat()
    write(folder, "new")
    assert texts(folder) == NEW
    assert (folder / "me").stat() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
def test_an_error_leaves_everything_as_it_was(folder, error):
    before = files_under(folder)
    with pytest.raises((error, DendritreeError)), reserved(folder) as place, files_together(place, OURS) as fresh:
        fail_after(fresh / "config", error)
    assert files_under(folder) == before


def test_an_error_leaves_no_new_folder(tmp_path):
    with pytest.raises(RuntimeError), reserved(tmp_path / "a" / "b"):
        raise RuntimeError
    assert files_under(tmp_path) == {}


def test_a_full_disk_is_said_and_leaves_everything_as_it_was(folder):
    before = files_under(folder)
    with largest_file(1000), pytest.raises(DendritreeError, match=r"^a folder must be writable: .*model \(File too"):
        write(folder, "long" * 1000)
    assert files_under(folder) == before


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    for place, why in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "model", "Not a directory")):
        message = rf"^the model must be writable: {place} \({why}\)$"
        with pytest.raises(DendritreeError, match=message), reserved(place, "the model"):
            pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_folder_that_takes_no_files_is_named():
    with pytest.raises(DendritreeError, match=r"^a folder must be writable: /proc/self \("), reserved("/proc/self"):
        pass


@pytest.mark.parametrize(
    ("name", "make"),
    [("me", Path.touch), ("mine/deep", lambda path: path.parent.write_text("me")), ("config", Path.mkdir)],
    ids=["a file of others", "a file for a folder", "a folder for a file"],
)
def test_a_file_of_others_in_the_way_is_an_error(name, make, tmp_path):
    (tmp_path / "model").mkdir()
    make(tmp_path / "model" / name)
    before = files_under(tmp_path)
    with pytest.raises(DendritreeError, match=r"^existing files are never replaced: .*/m\w+(/config)? is in the way"):
        write(tmp_path / "model", "new", **{name: "new"})
    assert files_under(tmp_path) == before


# ----------------------------------------------------------------------------------------------------------- killed


def test_killed_at_any_moment_the_files_are_all_old_or_all_new_for_the_next_reader_and_the_next_writer(tmp_path):
    seen = set()
    for step in itertools.count(1):
        place = tmp_path / f"{step}" / "model"
        write(place, "old", rest="old")
        (place / "me").write_text("me")
        killed = killed_at(step, lambda place=place: write(place, "new"), place)
        assert (place / "me").read_text() == "me"
        finish_changes(place)
        found = {name: (place / name).read_text() for name in ("config", "csv/scores")}
        assert len(set(found.values())) == 1
        assert files_of_others(place, ["rest"]) == ["config", "csv", "me"]
        seen.add(found["config"])
        write(place, "later")
        assert texts(place) == {"config": "later", "csv/scores": "later", "me": "me"}
        assert sorted(path.name for path in place.iterdir()) == ["config", "csv", "me"]
        if not killed:
            break
    assert seen == {"old", "new"}
    assert step > 10


def test_a_reader_who_may_not_write_leaves_decided_changes_alone(folder, monkeypatch):
    (folder / DECIDED).mkdir()
    (folder / DECIDED / "config").write_text("new")
    real = os.open

    def read_only(path, flags, *rest, **more):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        finish_changes(folder)
    assert (folder / "config").read_text() == "old"
    finish_changes(folder)
    assert (folder / "config").read_text() == "new"
    assert not (folder / DECIDED).exists()


def test_ctrl_c_in_the_middle_of_the_moves_finishes_them(folder, monkeypatch):
    real, calls = os.replace, []

    def replace(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(*args)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(folder, "new")
    assert texts(folder) == {**NEW, "rest": "old"}
    assert list(folder.glob(".*")) == []


# ------------------------------------------------------------------------------------------------------ two writers


def test_a_second_writer_waits_for_its_turn_or_says_who_writes(folder):
    message = rf"^a folder takes one writer at a time: {folder} is in use by process {os.getpid()}$"
    with reserved(folder), pytest.raises(DendritreeError, match=message), reserved(folder, patience=0):
        pass
    done = []

    def work(number):
        for turn in range(10):
            write(folder, f"{number} {turn}")
            done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(done) == 30
    found = texts(folder)
    assert found["config"] == found["csv/scores"]
    assert {name: found[name] for name in MINE} == MINE
    assert list(folder.glob(".*")) == []


def test_writers_of_a_folder_that_one_of_them_makes_and_removes_all_come_to_write(tmp_path):
    failures = []

    def work(fails):
        for _ in range(20):
            try:
                with reserved(tmp_path / "a" / "b"):
                    if fails:
                        raise RuntimeError
            except RuntimeError:
                pass
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(fails,)) for fails in (True, True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []


# ------------------------------------------------------------------------------------------------------------ links


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "latest").symlink_to("model-3")
    write(tmp_path / "latest", "new")
    assert texts(tmp_path / "model-3") == {"config": "new", "csv/scores": "new"}
    large = tmp_path / "large" / "scores"
    large.parent.mkdir()
    (tmp_path / "model-3" / "csv" / "scores").rename(large)
    (tmp_path / "model-3" / "csv" / "scores").symlink_to(large)
    write(tmp_path / "latest", "newer")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "model-3" / "csv" / "scores").is_symlink()
    assert (large.read_text(), files_under(large.parent)) == ("newer", {"scores": b"newer"})


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second drive")
def test_a_link_to_another_drive_is_followed(folder):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        (folder / "config").unlink()
        (folder / "config").symlink_to(f"{other}/config")
        write(folder, "new")
        assert (folder / "config").is_symlink()
        assert files_under(Path(other)) == {"config": b"new"}
    assert list(folder.glob(".*")) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a device")
def test_a_link_to_a_device_is_not_followed(folder, tmp_path):
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (folder / "config").unlink()
    (folder / "config").symlink_to(device)
    with pytest.raises(DendritreeError, match="must not be a device"):
        write(folder, "new")
    assert device.is_char_device()
    assert texts(folder / "csv") == {"scores": "old", "mine": "me"}


def test_a_change_that_somebody_else_decided_goes_through_no_link(folder, tmp_path):
    """A folder may come from anywhere: to open it must not write to other places."""
    (tmp_path / "secret").write_text("mine")
    (folder / "config").unlink()
    (folder / "config").symlink_to(tmp_path / "secret")
    (folder / DECIDED).mkdir()
    (folder / DECIDED / "config").write_text("new")
    finish_changes(folder)
    assert (tmp_path / "secret").read_text() == "mine"
    assert not (folder / "config").is_symlink()
    assert (folder / "config").read_text() == "new"


def test_a_change_that_somebody_else_decided_stays_in_its_folder(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "plots").symlink_to(tmp_path / "elsewhere")
    (folder / DECIDED / "plots").mkdir(parents=True)
    (folder / DECIDED / "plots" / "key").write_text("new")
    finish_changes(folder)
    with pytest.raises(DendritreeError, match="an unfinished change must stay in its folder"), reserved(folder):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_is_not_a_change_that_was_decided(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letter").write_text("mine")
    (folder / DECIDED).symlink_to(tmp_path / "elsewhere")
    finish_changes(folder)
    assert (tmp_path / "elsewhere" / "letter").read_text() == "mine"
