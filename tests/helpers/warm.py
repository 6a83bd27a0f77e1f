"""Separate processes that need not import torch: children of one that has, and has nothing of this package.

An interpreter takes one and a half seconds of CPU to import torch, as much again for what an optimizer needs. A child
imports dendritree itself, with its own `sys.argv`, folder, environment and pipes, and can be killed as any other. Its
hashes of texts are not those of the tests. What is about an interpreter's start or end needs `subprocess`.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from multiprocessing.reduction import DupFd
from pathlib import Path

ROOT = Path(__file__).parents[2]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch._dynamo"])


class WarmProcess:
    """Python code that runs as `python -W error -c CODE ARGUMENTS`; a context manager that leaves no process behind.

    Attributes:
        stdin, stdout: text, as of `subprocess.Popen`.
        pid: of the process.
        returncode: None while nobody has waited for the end; minus the signal that ended it.
    """

    def __init__(self, code, *arguments, root=ROOT, folder=ROOT, environment=()):
        (its_input, mine), (outputs, its_output) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(mine, "w"), os.fdopen(outputs)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed at our exit
        environment = {**os.environ, "COLUMNS": "80", **dict(environment)}
        path, files = [str(root), str(Path(__file__).parent)], (its_input, its_output, self._errors.fileno())
        task = (code, [str(argument) for argument in arguments], path, folder, environment)
        self._process = _context.Process(target=_work, args=(_Files(files), *task), daemon=True)
        self._process.start()
        self.pid, self.returncode = self._process.pid, None
        os.close(its_input)
        os.close(its_output)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=60):
        """The exit status."""
        self._process.join(timeout)
        self.returncode = self._process.exitcode
        assert self.returncode is not None, f"process {self.pid} has not ended in {timeout} s"
        return self.returncode

    def communicate(self, timeout=60):
        """All that it writes from now on until its end, and all its errors."""
        self.stdin.close()
        out = self.stdout.read()
        self.wait(timeout)
        self._errors.seek(0)
        return out, self._errors.read()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(ProcessLookupError):  # it may end while we ask whether it has
            if self._process.exitcode is None:
                self.send_signal(signal.SIGKILL)
        self.wait()
        for file in (self.stdin, self.stdout, self._errors):
            file.close()


def run(code, *arguments, **options):
    """Run a program to its end: exit status, output and errors."""
    with WarmProcess(code, *arguments, **options) as process:
        out, errors = process.communicate()
        return process.returncode, out, errors


COMMAND = "import runpy; runpy.run_module('dendritree_lab', run_name='__main__', alter_sys=True)"


class _Files:
    """Standard input, output and errors on their way to the process."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __reduce__(self):
        return _connect, tuple(map(DupFd, self.numbers))


def _connect(*files):
    for number, file in enumerate(files):
        os.dup2(file.detach(), number)


def _work(_files, code, arguments, path, folder, environment):
    """What a process does once its files are connected."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv, sys.path[:] = ["-c", *arguments], [*path, *(place for place in sys.path if place not in path)]
    warnings.simplefilter("error")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
