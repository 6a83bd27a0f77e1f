"""No traceback reaches the user of a command: whatever happens ends in one line and a status."""

import errno
import subprocess
import sys

import pytest
from command_runs import ROOT, run_process

from dendritree.cli import COMMANDS, FAULT, TRACEBACK, main
from dendritree.cli.messages import MOST_CHARACTERS
from dendritree.errors import FormatError

# ---------------------------------------------------------------------------------------------------------- interrupts

INTERRUPTED = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
from dendritree.__main__ import main
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = ["params", "1024", "10"]
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module", ["argparse", "dendritree.cli.fit", "numpy.linalg", "torch", "torch.nn", "dendritree.ops"]
)
def test_ctrl_c_while_packages_are_imported_is_one_line(module):
    command = [sys.executable, "-W", "error", "-c", INTERRUPTED.format(module=module)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "dendritree: interrupted\n")


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
        (KeyError("weight"), FAULT, "this is a fault of dendritree: KeyError: 'weight'; DENDRITREE_TRACEBACK=1 shows"),
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /dev/full")
@pytest.mark.parametrize("words", ["models", "params --paper"])
def test_output_that_cannot_be_written_is_one_line(words):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run_process(*words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == (
        "dendritree: a path must be one that the system lets us use: the output (No space left on device)\n"
    )
