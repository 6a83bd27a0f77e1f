"""Commands that are interrupted: in this process, or as processes of their own with all that they start."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import torch

import dendritree
from dendritree.errors import DendritreeError
from dendritree_lab.studies.engine.store import RunStore

ROOT = Path(dendritree.__file__).parents[1]
LAB = ROOT / "lab"
MARK = "DENDRITREE_TEST_RUN"
"""A variable that every process of a run inherits."""


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return met


def count_trials(folder):
    """How many trials a run has, 0 while it has no file."""
    try:
        with RunStore.open_for_reading(folder) as store:
            return len(store)
    except DendritreeError:
        return 0


@contextlib.contextmanager
def interrupt_when(condition):
    """Ctrl-C in this process, in the first step of any training after `condition` holds."""

    def press(module, _inputs):
        if module.training and condition():
            handle.remove()
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
    handle = torch.nn.modules.module.register_module_forward_pre_hook(press)
    try:
        yield
    finally:
        handle.remove()
        signal.signal(signal.SIGINT, before)


def run_process(*arguments, root=LAB, **options):
    """`python -m dendritree_lab` of the lab in `root` to its end; warnings are errors."""
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run(command_line(*arguments), env=environment(root), check=False, **options)


def environment(root=LAB):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), str(ROOT)]),
        "PYTHONUNBUFFERED": "",
        "COLUMNS": "80",
    }


def command_line(*arguments):
    return [sys.executable, "-W", "error", "-m", "dendritree_lab", *map(str, arguments)]


def processes_with(variable, value):
    """Processes that are alive and have a variable of this value in their environment, whoever their parent is now."""
    matches = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            has_it = f"{variable}={value}".encode() in (path / "environ").read_bytes().split(b"\0")
            alive = (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if has_it and alive:
            matches.append(int(path.name))
    return matches


class CommandRun:
    """A running command, the leader of a process group; a context manager that leaves no process behind.

    Args:
        folder: of the run.
        arguments: the command line, without `--run`.
        root: where the lab's package is.
        options: for `Popen`.
    """

    def __init__(self, folder, *arguments, root=LAB, **options):
        self.folder, self.mark = folder, uuid.uuid4().hex
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        self.process = subprocess.Popen(
            command_line(*arguments, "--run", folder),
            env=environment(root) | {MARK: self.mark},
            cwd=root,
            start_new_session=True,
            **options,
        )

    def processes(self):
        """Processes of this run that are alive, workers too."""
        return processes_with(MARK, self.mark)

    def reaches(self, trials, seconds=120):
        """Whether it comes to have so many trials while it runs."""
        wait_until(lambda: count_trials(self.folder) >= trials or self.process.poll() is not None, seconds)
        return self.process.poll() is None

    def kill(self):
        """As `kill -9` does; whether its workers end too."""
        self.process.kill()
        self.process.wait()
        return wait_until(lambda: not self.processes(), 30)

    def interrupt(self):
        """Ctrl-C: the terminal sends it to the whole group. Returns exit status, output and errors."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.finish(60)

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
