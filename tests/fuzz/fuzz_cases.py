"""Cases run in a child process, so that a crash or a hang is the failure of one case and not the end of all.

A kind of cases is a module with a function `run(seed, folder)`. It raises if anything is wrong and otherwise returns a
word or two that say how the case ended, to be counted. The seed decides everything about the case.
"""

import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from processes import processes_with

FUZZ_MARK = "DENDRITREE_FUZZ_CHILD"
"""A variable that everything a child starts inherits, so that nothing outlives a case that hangs."""
OFFLINE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}
"""Nothing is fetched."""
SHOWN = 6000
"""Characters of what a crashed child wrote, its traceback last, that a failure shows."""


class Kind(NamedTuple):
    """A kind of cases: the module that runs them, the share of the time, and the seconds after which one hangs."""

    module: str
    share: float = 1.0
    patience: float = 300.0


KINDS = {
    "layers": Kind("fuzz_layers", share=2.0),
    "convolutions": Kind("fuzz_convolutions"),
    "neurons": Kind("fuzz_neurons"),
    "interrupts": Kind("fuzz_interrupts"),
    "commands": Kind("fuzz_commands", share=2.0),
    "files": Kind("fuzz_files", share=2.0),
    "stops": Kind("fuzz_stops", share=3.0, patience=400.0),
}


class Ended(NamedTuple):
    """How a case ended, or what was wrong."""

    outcome: str
    problem: str | None
    seconds: float


class Clock:
    """Seconds in which we were awake: while a machine sleeps, or somebody has stopped all of us, none pass."""

    def __init__(self):
        self.seconds = 0.0

    def waits(self, answer, patience):
        """Whether `answer(seconds)`, which waits so long at most, comes true before our patience ends."""
        end = self.seconds + patience
        while self.seconds < end:
            start = time.monotonic()
            answered = answer(min(1.0, end - self.seconds))
            self.seconds += min(time.monotonic() - start, 2.0)
            if answered:
                return True
        return False


def outputs_of(process, patience):
    """What a process wrote to its pipes, once it has ended; an error if it has not, when our patience ends."""
    found = []

    def ends(seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            found.append(process.communicate(timeout=seconds))
        return bool(found)

    assert Clock().waits(ends, patience), f"{process.args} still runs after {patience:g} s"
    return found[0]


class Child:
    """A process for cases of one kind: started when a case needs it, and again after it has died. A context manager."""

    def __init__(self, kind):
        self.kind, self.process = kind, None
        self.scratch = Path(tempfile.mkdtemp(prefix="dendritree-fuzz-"))
        self.log = self.scratch / "output.txt"

    def run(self, seed):
        """One case, to its end or that of our patience."""
        clock = Clock()
        try:
            if self.process is None:
                self._start(clock)
            self.connection.send(seed)
            if clock.waits(self.connection.poll, self.kind.patience):
                return Ended(*self.connection.recv(), clock.seconds)
            problem = f"no end after {self.kind.patience:g} s; it was in\n{self._where()}"
        except (EOFError, OSError):
            self.process.join(10)
            problem = f"the process died with status {self.process.exitcode}; it wrote\n{self._written()}"
        except BaseException:
            self.stop()
            raise
        self.stop()
        return Ended("", problem, clock.seconds)

    def _start(self, clock):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (self.kind.module, theirs, self.scratch, self.log)
        self.process = context.Process(target=_serve, args=arguments, daemon=False)
        self.process.start()
        theirs.close()
        clock.waits(self.connection.poll, self.kind.patience)
        self.connection.recv()  # it has imported everything

    def _where(self):
        """The Python lines that a child is in."""
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGUSR1)
            time.sleep(1)
        return self._written()

    def _written(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-SHOWN:] if self.log.exists() else ""

    def stop(self):
        """End the child and everything that it has started."""
        if self.process is None:
            return
        self.connection.close()
        for pid in processes_with(FUZZ_MARK, str(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _serve(module, connection, scratch, log):
    """Run the cases whose seeds arrive, in a session of our own: Ctrl-C at the terminal is for the parent alone."""
    os.setsid()
    os.environ |= {FUZZ_MARK: str(os.getpid()), **OFFLINE}
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(written, stream)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)  # what a case leaves behind goes when we go
    run = importlib.import_module(module).run
    connection.send("ready")
    while True:
        try:
            seed = connection.recv()
        except EOFError:  # nobody wants more
            return
        os.ftruncate(written, 0)
        folder = Path(tempfile.mkdtemp(prefix="case-"))
        try:
            ended = run(seed, folder), None
            assert Path(os.devnull).is_char_device(), f"{os.devnull} was replaced"
        except BaseException:
            ended = "", traceback.format_exc()
        connection.send(ended)
        shutil.rmtree(folder, ignore_errors=True)
