"""No traceback reaches the user of a command: whatever happens ends in one line and a status."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_runs import ROOT, run_process
from full_disk import largest_file
from table_cases import houses

from dendritree import MLNClassifier, save
from dendritree.cli import COMMANDS, FAULT, TRACEBACK, main
from dendritree.cli.messages import MOST_CHARACTERS
from dendritree.errors import FormatError

LINUX = sys.platform.startswith("linux")

# ---------------------------------------------------------------------------------------------------------- interrupts

INTERRUPTED = """
import contextlib, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            with contextlib.suppress(*[KeyboardInterrupt] * {swallowed}):
                signal.raise_signal(signal.SIGINT)
            raise AttributeError("half imported")  # as after NumPy's C code has swallowed it

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
from dendritree.__main__ import main
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = ["params", "1024", "10"]
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "swallowed"),
    [
        ("argparse", False),
        ("dendritree.cli.fit", False),
        ("numpy.linalg", True),
        ("torch.nn", False),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("numpy.linalg", False), ("torch.nn", True), ("dendritree.ops", False))
        ),
    ],
)
def test_ctrl_c_while_packages_are_imported_is_one_line(module, swallowed):
    command = [sys.executable, "-W", "error", "-c", INTERRUPTED.format(module=module, swallowed=swallowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "dendritree: interrupted\n")


ABORTING = """
import importlib.machinery, os, signal, sys, time, types

class Loader:
    def create_module(self, spec):
        return types.ModuleType("torch")

    def exec_module(self, module):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            os.abort()  # as C++ code does that an exception of Python crosses
        time.sleep(600)

def find_spec(name, path=None, target=None, ever=importlib.machinery.PathFinder.find_spec):
    return importlib.machinery.ModuleSpec(name, Loader()) if name == "torch" else ever(name, path, target)

importlib.machinery.PathFinder.find_spec = find_spec
signal.signal(signal.SIGINT, signal.default_int_handler)
from dendritree.__main__ import main
sys.argv[1:] = ["params", "1024", "10"]
sys.exit(main())
"""


def test_ctrl_c_while_torch_is_imported_ends_the_command_at_once_and_does_not_abort():
    done = subprocess.run(
        [sys.executable, "-c", ABORTING], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "dendritree: interrupted\n")


def test_nothing_slow_is_imported_before_ctrl_c_is_answered():
    code = "import os, sys; before = set(sys.modules); import dendritree.__main__; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"__future__", "dendritree", "dendritree.__main__"}


class Interrupting:
    """Ctrl-C comes while it is finalized, as it may in Numba's compiler: Python drops it and complains."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_that_python_loses_in_a_finalizer_is_one_line(monkeypatch, call):
    def run(_):
        del Interrupting().__dict__
        time.sleep(20)

    before = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    monkeypatch.setattr(COMMANDS["models"], "run", run)
    try:
        assert call("models") == (130, "", "dendritree: interrupted\n")
        assert sys.unraisablehook is before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])


def test_other_complaints_of_python_are_let_through(monkeypatch, call):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    monkeypatch.setattr(Interrupting, "__del__", lambda _: 1 / 0)
    monkeypatch.setattr(COMMANDS["models"], "run", lambda _: Interrupting().__dict__ and None)
    assert call("models") == (0, "", "")
    assert [each.exc_type for each in told] == [ZeroDivisionError]


# --------------------------------------------------------------------------------------------- what a command raises


@pytest.fixture
def end_with(monkeypatch, capsys):
    """A function that runs a command which raises; returns the status and standard error."""

    def run(error):
        def fail(_):
            raise error

        monkeypatch.setattr(COMMANDS["models"], "run", fail)
        status = main(["models"])
        out, errors = capsys.readouterr()
        assert out == ""
        return status, errors

    return run


def from_interrupt():
    error = ImportError("initialization failed")
    error.__context__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a.csv"), 2, "'a.csv' (No space left on device)"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 3000), 2, "(File name too long)"),
        (OSError("odd"), 2, "the output (odd)"),
        (MemoryError("8 GiB"), 2, "not enough memory: 8 GiB"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 4 TB"), 2, "not enough memory: Default"),
        (ImportError("no torch here", name="torch"), 2, "a package must be importable: torch is not (no torch here)"),
        (from_interrupt(), 130, "interrupted"),
        (FormatError("two\nlines"), 2, "two lines"),
        (FormatError("\x1b[2J" + "long " * 999), 2, r"\x1b[2Jlong long"),
        (KeyError("weight"), FAULT, "this is a bug in dendritree: KeyError: 'weight'; DENDRITREE_TRACEBACK=1 shows"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_is_one_line_of_bounded_length(error, status, line, end_with, monkeypatch):
    monkeypatch.delenv(TRACEBACK, raising=False)
    found, errors = end_with(error)
    assert found == status
    assert errors.startswith("dendritree: ")
    assert line in errors
    assert errors.count("\n") == 1
    assert len(errors) < MOST_CHARACTERS + 50


def test_whoever_asks_gets_the_traceback(end_with, monkeypatch):
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(KeyError):
        end_with(KeyError("weight"))


# ------------------------------------------------------------------------------------------------- standard streams


@pytest.mark.skipif(not LINUX, reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "words",
    [
        "--help",
        pytest.param("models", marks=pytest.mark.slow),
        pytest.param("params --paper", marks=pytest.mark.slow),
        pytest.param("fit --help", marks=pytest.mark.slow),
        pytest.param("--version", marks=pytest.mark.slow),
    ],
)
def test_output_that_cannot_be_written_is_one_line(words, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run_process(*words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == ("dendritree: a path must be usable: the output (No space left on device)\n")


@pytest.mark.skipif(not LINUX, reason="no /dev/full")
@pytest.mark.parametrize("words", ["models", "params --paper"])
def test_what_a_command_cannot_write_is_one_line(words, monkeypatch, capsys):
    """In this process: a separate process takes two seconds to import torch."""
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:  # noqa: PTH123
        patch.setattr(sys, "stdout", full)
        status = main(words.split())
    assert status == 2
    assert capsys.readouterr().err == ("dendritree: a path must be usable: the output (No space left on device)\n")


@pytest.mark.skipif(not LINUX, reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("words", ["--unknown", pytest.param("report nothing", marks=pytest.mark.slow)])
def test_a_line_that_cannot_be_written_changes_no_status(words, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run_process(*words.split(), capture_output=False, stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, done.stdout) == (2, "")


ALL = (0, 1, 2)
NO_TORCH = [(closed, *line) for closed in ((1,), (2,), ALL) for line in (("--version", 0), ("--unknown", 2))]
TORCH = [(closed, *line) for closed in ((1,), (2,), ALL) for line in (("models", 0), ("report nothing", 2))]


# A process that imports torch takes two seconds.
@pytest.mark.parametrize(
    ("closed", "words", "status"),
    [
        *NO_TORCH,
        *(pytest.param(*case, marks=[pytest.mark.slow] * (case != (ALL, "models", 0))) for case in TORCH),
    ],
)
def test_closed_streams_are_as_good_as_none(words, status, closed):
    done = run_process(*words.split(), preexec_fn=lambda: [os.close(stream) for stream in closed])
    assert done.returncode == status
    assert (done.stdout != "") == (1 not in closed and status == 0)
    assert (done.stderr != "") == (2 not in closed and status == 2)


# --------------------------------------------------------------------------------------------- paths, files and tables

LONG = "n" * 300


def ends_in_a_line(found, pattern):
    status, out, errors = found
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"dendritree: {pattern}\n", errors), errors


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("file", "File exists"),
        ("file/inside", "Not a directory"),
        (LONG, "File name too long"),
        pytest.param("/proc/new", "No such file or directory", marks=pytest.mark.skipif(not LINUX, reason="no /proc")),
    ],
    ids=["a file", "below a file", "300 characters", "/proc"],
)
def test_figures_need_a_folder_that_can_be_made(out, reason, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    ends_in_a_line(call("figures", "--out", out), rf"--out must be writable: {re.escape(out)} \({reason}\)")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_figures_on_a_full_disk_leave_nothing(tmp_path, call):
    with largest_file(1000):
        found = call("figures", "--out", tmp_path)
    ends_in_a_line(found, r"a picture must be writable: .*paper-masks.svg \(File too large\)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", ["view NAME", "export NAME", "report NAME", "predict NAME t.csv", "fit NAME.csv --target y --out o"]
)
def test_a_name_of_300_characters_is_one_line(line, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    ends_in_a_line(call(*line.replace("NAME", LONG).split()), r".*n{200}.*\(File name too long\).*")


def test_a_model_whose_file_names_a_device_is_not_shown(tmp_path, call):
    save(MLNClassifier(64, 10, branching=8), tmp_path / "net")
    path = tmp_path / "net" / "config.json"
    config = json.loads(path.read_text())
    config["arguments"]["device"] = "meta"
    path.write_text(json.dumps(config))
    found = call("view", tmp_path / "net", "--no-browser")
    ends_in_a_line(found, r"an argument in config\.json must not be device or dtype: got device \(in .*net\)")


@pytest.mark.parametrize("column", ["rooms", "price"])
def test_a_table_with_values_of_1e308_is_learned_or_rejected(column, tmp_path, call):
    """Any Python warning would be an error here."""
    table = houses(60)
    table[column] = np.where(np.arange(60) % 3, 1e308, -1.7e308) * np.linspace(0.9, 1, 60)
    table.to_csv(tmp_path / "houses.csv", index=False)
    line = [
        "fit",
        tmp_path / "houses.csv",
        "--target",
        "price",
        "--out",
        tmp_path / "model",
        "--splits",
        2,
        "--epochs",
        1,
    ]
    status, _, errors = call(*line)
    last = errors.splitlines()[-1]
    if column == "price":
        assert status == 2
        assert re.match(r"dendritree: y must be at most 1e\+130 in size, .*: got -?1\.?\d*e\+308", last)
    else:
        assert (status, "Warning" in errors) == (0, False)
        assert call("predict", tmp_path / "model", tmp_path / "houses.csv")[0] == 0
