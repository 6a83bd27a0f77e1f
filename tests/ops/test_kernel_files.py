"""The files that keep compiled kernels: what is read is what was written, or nothing."""

import os

import pytest

files = pytest.importorskip("dendritree.ops.kernels.files")

KEY, CODE = ("signature", "machine"), ("library", b"machine code " * 3)


@pytest.fixture
def file(tmp_path):
    """A file that keeps one code."""
    kept = files.KernelFile(str(tmp_path), "kernel", "sources")
    kept.save(KEY, CODE)
    return kept


def paths(folder):
    return sorted(folder.iterdir())


def test_what_was_saved_is_loaded(file, tmp_path):
    assert [path.name for path in paths(tmp_path)] == ["kernel.1.nbc", "kernel.nbi"]
    assert files.KernelFile(str(tmp_path), "kernel", "sources").load(KEY) == CODE
    assert file.load(("another", "machine")) is None


@pytest.mark.parametrize("which", [0, 1], ids=["code", "index"])
def test_a_file_cut_off_anywhere_or_with_any_byte_changed_is_as_if_it_were_not_there(file, tmp_path, which):
    path = paths(tmp_path)[which]
    whole = path.read_bytes()
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            assert file.load(KEY) is None
    file.save(KEY, CODE)  # the next one repairs it
    assert file.load(KEY) == CODE


@pytest.mark.parametrize("which", [0, 1], ids=["code", "index"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(file, tmp_path, which):
    path = paths(tmp_path)[which]
    path.unlink()
    os.mkfifo(path)
    assert file.load(KEY) is None
    file.save(KEY, CODE)
    assert file.load(KEY) == CODE


def test_code_of_other_sources_or_another_numba_is_not_loaded(file, tmp_path):
    assert files.KernelFile(str(tmp_path), "kernel", "new sources").load(KEY) is None
    file._version = "0.0"
    assert file.load(KEY) is None


def test_a_process_killed_between_index_and_code_leaves_no_wrong_code(file, tmp_path):
    """The name that the index gives is that of a code which is there already: of another kernel, or of old sources."""
    file._save_index({("other", "machine"): "kernel.1.nbc"})
    assert file.load(("other", "machine")) is None
    new = files.KernelFile(str(tmp_path), "kernel", "new sources")
    new._save_index({KEY: "kernel.1.nbc"})
    assert new.load(KEY) is None
