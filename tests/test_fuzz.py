"""The fuzzers: a few cases of every kind, and crashes, hangs and errors that are reported with their seeds."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import fuzz_commands
import pytest
from fuzz_cases import KINDS, Child, Kind

FUZZ = Path(__file__).parent / "fuzz"

SMOKE = {
    "layers": [0, 1, 2, 3, 4, 5],
    "convolutions": [0, 1, 2, 3],
    "neurons": [0, 1, 2, 3, 4, 5],
    "interrupts": [5],
    "commands": [2, 14, 15, 16, 22, 31, 43, 59],
    "files": [0, 1, 2, 4, 6, 7, 12, 13, 15, 16, 24],
    "stops": [20],
}
"""Seeds of cases that are over in a moment."""


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, seeds in SMOKE.items() for seed in seeds])
def test_a_few_cases_of_every_kind(kind, seed, tmp_path, monkeypatch):
    module = importlib.import_module(KINDS[kind].module)
    if kind == "stops":
        monkeypatch.setattr(module, "PRELOADED", [module.__name__])  # that of a `save` needs no pandas
    monkeypatch.setattr(fuzz_commands, "IMPORTED_FIRST", [])
    monkeypatch.setattr(fuzz_commands, "SECONDS", 600)  # nothing is interrupted, however busy the machine is
    assert module.run(seed, tmp_path)


def test_every_kind_has_a_smoke_test():
    assert SMOKE.keys() == KINDS.keys()


# A kind whose seeds say what goes wrong.
BROKEN = """
import os, signal, time

def run(seed, folder):
    print("working on", seed, flush=True)
    if seed == 1:
        raise ValueError("a wrong number")
    if seed == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 3:
        time.sleep(60)
    return "fine"
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    (tmp_path / "broken_kind.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    with Child(Kind("broken_kind", patience=2)) as child:
        yield child


def test_errors_crashes_and_hangs_are_failures_of_their_case_and_the_next_one_runs(broken):
    ends = [broken.run(seed) for seed in (0, 1, 0, 2, 0, 3, 0)]
    assert [end.outcome for end in ends] == ["fine", "", "fine", "", "fine", "", "fine"]
    error, crash, hang = (ends[place].problem for place in (1, 3, 5))
    assert "ValueError: a wrong number" in error
    assert f"died with status {-signal.SIGSEGV}" in crash
    assert "working on 2" in crash
    assert "no end after 2 s" in hang
    assert "line 11 in run" in hang  # where it hangs


def test_a_child_leaves_no_process_and_no_file(broken):
    broken.run(0)
    pid, scratch = broken.process.pid, broken.scratch
    broken.__exit__()
    assert not scratch.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow  # two processes that import torch; fast: the same case above, and children that go wrong
def test_the_command_counts_and_replays_one_case():
    command = [sys.executable, str(FUZZ), "--only", "layers", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "layers: 1 cases in" in done.stdout
    assert "(right 1)" in done.stdout


def test_a_seed_without_a_kind_is_a_mistake_of_the_command_line():
    command = [sys.executable, str(FUZZ), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "--seed runs one case again" in done.stderr
