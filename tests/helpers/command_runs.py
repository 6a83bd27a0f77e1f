"""`dendritree reproduce` as a process of its own, with all that it starts."""

import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

from small_paper import command, environment

from dendritree.errors import DendritreeError
from dendritree.studies.engine.store import RunStore

MARK = "DENDRITREE_TEST_RUN"
"""A variable that every process of a run inherits."""


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return met


def trials_in(folder):
    """How many trials a run has, 0 while it has no file."""
    try:
        with RunStore.open_for_reading(folder) as store:
            return len(store)
    except DendritreeError:
        return 0


class CommandRun:
    """A running `dendritree reproduce`, the leader of a process group; a context manager that leaves none behind."""

    def __init__(self, installed, folder, *arguments, **options):
        self.folder, self.mark = folder, uuid.uuid4().hex
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        self.process = subprocess.Popen(
            command("reproduce", "--run", folder, *arguments),
            env=environment(installed) | {MARK: self.mark},
            cwd=installed,
            start_new_session=True,
            **options,
        )

    def processes(self):
        """Processes of this run that are alive, workers too, whoever their parent is now."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                mine = f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes().split(b"\0")
                alive = (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except OSError:
                continue
            if mine and alive:
                found.append(int(path.name))
        return found

    def reaches(self, trials, seconds=120):
        """Whether it comes to have so many trials while it runs."""
        wait_until(lambda: trials_in(self.folder) >= trials or self.process.poll() is not None, seconds)
        return self.process.poll() is None

    def interrupt(self):
        """Ctrl-C: the terminal sends it to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self, seconds=180):
        """Exit status, output and errors."""
        out, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, errors

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
