"""The files that keep compiled kernels: what is read is what was written, or nothing."""

import os

import pytest

from dendritree.ops.machine_code import Code, CodeFile, load

CODE = Code("run", ["cos"], b"machine code\n" * 3)


@pytest.fixture
def file(tmp_path):
    """A file that keeps one code."""
    kept = CodeFile([tmp_path], "kernel", "sources")
    kept.write(CODE)
    return kept


def test_what_was_saved_is_loaded(file, tmp_path):
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.code"]
    assert file.read() == CODE
    assert CodeFile([tmp_path], "kernel", "sources").read() == CODE


def test_a_file_cut_off_anywhere_or_with_any_byte_changed_is_as_if_it_were_not_there(file, tmp_path):
    path = tmp_path / "kernel.code"
    whole = path.read_bytes()
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            assert file.read() is None
    file.write(CODE)  # the next one repairs it
    assert file.read() == CODE


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(file, tmp_path):
    path = tmp_path / "kernel.code"
    path.unlink()
    os.mkfifo(path)
    assert file.read() is None
    file.write(CODE)
    assert file.read() == CODE


def test_code_of_another_kernel_of_other_sources_or_another_numba_is_not_loaded(file, tmp_path):
    assert CodeFile([tmp_path], "kernel", "new sources").read() is None
    (tmp_path / "other.code").write_bytes((tmp_path / "kernel.code").read_bytes())
    assert CodeFile([tmp_path], "other", "sources").read() is None
    assert file.read() == CODE


def test_the_first_folder_that_has_it_is_read_and_the_first_that_can_be_is_written(file, tmp_path):
    (tmp_path / "a file").touch()
    folders = [tmp_path / "a file" / "no folder", tmp_path / "new", tmp_path]
    several = CodeFile(folders, "kernel", "sources")
    assert several.read() == CODE
    assert several.writable() == tmp_path / "new" / "kernel.code"
    other = CODE._replace(symbol="other")
    several.write(other)
    assert several.read() == other
    assert file.read() == CODE
    assert CodeFile(folders[:1], "kernel", "sources").writable() is None


def test_a_code_that_calls_what_this_process_lacks_is_not_loaded():
    """LLVM would end the process."""
    pytest.importorskip("llvmlite")
    assert load(CODE._replace(needs=["no_such_function_anywhere"])) is None
