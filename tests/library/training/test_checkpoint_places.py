"""Where a checkpoint is written: bad paths are reported before training; what killed runs left is removed."""

import os
from pathlib import Path

import pytest
import torch
from checkpoint_cases import Stopped, make_network, names_in, rejected, run_through, stop_by
from training_cases import make_split

from dendritree import FitConfig, fit
from dendritree.errors import FormatError, OptionError

CONFIG = FitConfig(epochs=2)
UNFINISHED = ".run." + "0123456789abcdef" * 2

# ---------------------------------------------------------------------------------------------------- not to be written


def rejected_before_training(path, message, error=OptionError):
    model = make_network("plain")
    model.register_forward_pre_hook(lambda *_: pytest.fail("was trained"))
    with pytest.raises(error, match=message):
        fit(model, make_split(), CONFIG, checkpoint=path)


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    rule = "checkpoint must be a file that can be written: got '.*' "
    rejected_before_training(tmp_path / "file" / "run", rule + r"\(Not a directory\)")
    rejected_before_training(tmp_path / "file" / "deep" / "run", rule + r"\(Not a directory\)")
    assert names_in(tmp_path) == ["file"]


def test_a_name_that_no_file_can_have(tmp_path):
    rule = "checkpoint must be a file that can be written: got '.*' "
    rejected_before_training(tmp_path / ("n" * 300), rule + r"\(File name too long\)")
    rejected_before_training(tmp_path / "nu\0ll", rule + r"\(.*embedded null .*\)")
    assert names_in(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that even root cannot write to")
def test_a_folder_of_the_system():
    rejected_before_training("/proc/run", "checkpoint must be a file that can be written: got '/proc/run' ")


@pytest.mark.parametrize("path", [3, True, ["run"]])
def test_what_is_no_path(path):
    rejected_before_training(path, r"checkpoint must be a path or None: got ")


@pytest.fixture
def closed(tmp_path):
    """A function that closes the folder of the test to its own user."""
    if os.name != "posix" or os.geteuid() == 0:
        pytest.skip("modes of folders do not bind this user")
    yield tmp_path.chmod
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_folder_without_permission(mode, tmp_path, closed):
    closed(mode)
    rejected_before_training(
        tmp_path / "run", r"checkpoint must be a file that can be written: .*\(Permission denied\)"
    )
    rejected_before_training(tmp_path / "new" / "run", r"checkpoint must be a file that can be written: ")


def test_a_run_that_cannot_go_on_in_its_place_is_told_so_and_a_finished_one_is_read(tmp_path, closed):
    with pytest.raises(Stopped):
        fit(make_network("plain"), make_split(), CONFIG, callbacks=[stop_by(Stopped, 2)], checkpoint=tmp_path / "half")
    finished = run_through("plain", CONFIG, checkpoint=tmp_path / "run")
    closed(0o500)
    rejected(tmp_path / "half", r"must be a file that can be written: .*half'", config=CONFIG, error=OptionError)
    assert run_through("plain", CONFIG, checkpoint=tmp_path / "run")[2] == finished[2]


@pytest.mark.usefixtures("closed")
def test_a_checkpoint_that_cannot_be_read(tmp_path):
    run_through("plain", CONFIG, checkpoint=tmp_path / "run")
    (tmp_path / "run").chmod(0)
    rejected_before_training(tmp_path / "run", "a checkpoint must be a safetensors file: .*run", FormatError)


def test_a_model_whose_state_is_not_of_tensors(tmp_path):
    class Remembering(torch.nn.Linear):
        def get_extra_state(self):
            return {"remembered": 3}

        def set_extra_state(self, state):
            pass

    model = Remembering(16, 3, dtype=torch.float64)
    model.register_forward_pre_hook(lambda *_: pytest.fail("was trained"))
    rule = r"the state of a model with a checkpoint must be tensors: _extra_state is \{'remembered': 3\}"
    with pytest.raises(OptionError, match=rule):
        fit(model, make_split(), CONFIG, checkpoint=tmp_path / "run")
    assert names_in(tmp_path) == []


# ----------------------------------------------------------------------------------------------------- modes, leftovers


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_mode_follows_the_umask(mask, tmp_path):
    before = os.umask(mask)
    try:
        run_through("plain", CONFIG, checkpoint=tmp_path / "run")
    finally:
        os.umask(before)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o666 & ~mask


OF_OTHERS = [
    ".run.notes",
    ".other" + UNFINISHED[4:],
    UNFINISHED[1:],
    UNFINISHED[:-1],
    UNFINISHED + "0",
    ".runs" + "0" * 32,
]


def test_only_unfinished_files_of_the_same_checkpoint_are_removed(tmp_path):
    for name in [UNFINISHED, *OF_OTHERS]:
        (tmp_path / name).write_text("half")
    seen = []
    callbacks = [lambda _: seen.append(names_in(tmp_path))]
    fit(make_network("plain"), make_split(), CONFIG, callbacks=callbacks, checkpoint=tmp_path / "run")
    assert seen == [sorted([UNFINISHED, *OF_OTHERS]), sorted(["run", *OF_OTHERS])]  # gone with the first file
    assert names_in(tmp_path) == sorted(["run", *OF_OTHERS])


def test_a_finished_run_removes_them_too(tmp_path):
    run_through("plain", CONFIG, checkpoint=tmp_path / "run")
    (tmp_path / UNFINISHED).write_text("half")
    run_through("plain", CONFIG, checkpoint=tmp_path / "run")
    assert names_in(tmp_path) == ["run"]


def test_a_file_that_another_process_began_meanwhile_is_left_to_it(tmp_path):
    def begin(_):
        (tmp_path / UNFINISHED).write_text("half")

    fit(make_network("plain"), make_split(), CONFIG, callbacks=[begin], checkpoint=tmp_path / "run")
    assert names_in(tmp_path) == [UNFINISHED, "run"]


def test_a_name_with_signs_that_mean_something_in_patterns(tmp_path):
    (tmp_path / UNFINISHED.replace("run", "r[u]n*")).write_text("half")
    (tmp_path / UNFINISHED).write_text("of another")
    run_through("plain", CONFIG, checkpoint=tmp_path / "r[u]n*")
    assert names_in(tmp_path) == sorted([UNFINISHED, "r[u]n*"])
