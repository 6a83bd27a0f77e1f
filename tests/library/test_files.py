"""Files that are written completely or not at all."""

import os

import pytest

from dendritree.errors import DendritreeError
from dendritree.files import whole_file, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    (tmp_path / "notes").write_bytes(b"old")
    assert write_whole(tmp_path / "notes", "n\u00e9w") == tmp_path / "notes"
    assert names(tmp_path) == ["notes"]
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "n\u00e9w"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_after_an_error_in_the_block_the_old_file_is_there(tmp_path, error):
    (tmp_path / "notes").write_bytes(b"old")

    def write_half():
        with whole_file(tmp_path / "notes") as scratch:
            scratch.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert names(tmp_path) == ["notes"]
    assert (tmp_path / "notes").read_bytes() == b"old"


def test_folders_are_created_and_a_path_that_cannot_be_written_is_named(tmp_path):
    write_whole(tmp_path / "a" / "b" / "notes", b"all")
    for path in (tmp_path / "a" / "b" / "notes" / "more", tmp_path / "a" / "b"):
        with pytest.raises(DendritreeError, match=f"could not write a picture: {path}"):
            write_whole(path, b"all", "a picture")
    assert names(tmp_path / "a") == ["b"]


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "notes").symlink_to("real/notes")
    for content in (b"one", b"two"):
        write_whole(tmp_path / "notes", content)
        assert (tmp_path / "notes").is_symlink()
        assert (tmp_path / "real" / "notes").read_bytes() == content
    assert names(tmp_path / "real") == ["notes"]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DendritreeError, match="not a file"):
        write_whole(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
