"""Training processes that are killed, at any moment and while they write: the run resumes from the file."""

import random
import shutil
import signal
import time

import pytest
from checkpoint_cases import assert_same, callbacks_of, make_network, names_in, outcome, run_through
from training_cases import make_split
from warm import WarmProcess

from dendritree import FitConfig, fit
from dendritree.training.tensor_file import read_checkpoint

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")

EPOCHS = 20
CONFIG = FitConfig(epochs=EPOCHS, batch_size=10, schedule="one-cycle")
MOST = 8  # epochs that a process trains before it waits for its end

# Trains and tells after each epoch. sys.argv: model, checkpoint, seed of the first weights.
TRAINER = f"""
import sys, time
from checkpoint_cases import callbacks_of, make_network
from training_cases import make_split
from dendritree import FitConfig, fit

def tell(run):
    print(len(run.history.epochs), flush=True)
    told.append(run)
    if len(told) == {MOST}:
        time.sleep(60)

told = []
name, path, seed = sys.argv[1:]
config = FitConfig(epochs={EPOCHS}, batch_size=10, schedule="one-cycle")
fit(make_network(name, int(seed)), make_split(), config, callbacks=[*callbacks_of(name), tell], checkpoint=path)
"""

# The same, killed when the third checkpoint is written but not yet in its place.
KILLED_WHILE_WRITING = (
    """
import os, pathlib, signal, sys
plain, replaced = pathlib.Path.replace, []
def replace(self, target):
    if pathlib.Path(target).name == pathlib.Path(sys.argv[2]).name:  # not kernels, which a first compilation writes
        replaced.append(target)
    if len(replaced) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, target)
pathlib.Path.replace = replace
"""
    + TRAINER
)


def finish(name, path):
    model = make_network(name, 1234)
    return outcome(model, fit(model, make_split(), CONFIG, callbacks=callbacks_of(name), checkpoint=path))


@pytest.mark.parametrize("name", [pytest.param("dropout", marks=pytest.mark.slow), "rewired"])
def test_whenever_a_run_is_killed_it_goes_on_to_the_same_end(name, tmp_path):
    path, moments = tmp_path / "run", random.Random(name)
    last = 0
    for seed in range(2):
        with WarmProcess(TRAINER, name, path, seed) as process:
            told = [int(process.stdout.readline()) for _ in range(moments.randint(2, MOST - 2))]
            time.sleep(moments.uniform(0.0, 0.02))
            process.send_signal(signal.SIGKILL)
            told += map(int, process.stdout.read().split())
        assert process.returncode == -signal.SIGKILL
        assert told[0] == last + 1  # where the last one was, not at the beginning
        last = len(read_checkpoint(path)[1]["epochs"])
        assert told[-1] - 1 <= last <= told[-1], "all that was told, but for the epoch under way"
    assert 0 < last < EPOCHS
    assert_same(finish(name, path), run_through(name, CONFIG))


@pytest.fixture(scope="module")
def left_by_a_kill(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    with WarmProcess(KILLED_WHILE_WRITING, "rewired", folder / "run", 0) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    return folder


@pytest.fixture
def killed_while_writing(left_by_a_kill, tmp_path):
    return shutil.copytree(left_by_a_kill, tmp_path / "killed") / "run"


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(killed_while_writing):
    assert len(read_checkpoint(killed_while_writing)[1]["epochs"]) == 2
    assert_same(finish("rewired", killed_while_writing), run_through("rewired", CONFIG))


def test_what_a_killed_run_left_half_done_is_gone_when_the_run_is_over(killed_while_writing):
    assert len(names_in(killed_while_writing.parent)) == 2
    finish("rewired", killed_while_writing)
    assert names_in(killed_while_writing.parent) == ["run"]
