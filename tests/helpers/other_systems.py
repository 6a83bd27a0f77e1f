"""A system that is not Linux, simulated in a separate process: what is hidden stays hidden.

`python other_systems.py FOLDER` uses the core without what only Linux has. Packages of others are imported first, and
find its files later too: they look at the name of the system and expect what it has.
"""

import builtins
import contextlib
import ctypes
import fcntl
import io
import os
import signal
import sys
import time
from pathlib import Path
from types import ModuleType

import numba
import pandas
import pytest
import safetensors.torch
import scipy.stats
import sklearn.ensemble
import torch

OTHERS = (numba, pandas, safetensors.torch, scipy.stats, sklearn.ensemble)
MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = {
    os: """fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getsid
        getuid killpg lchown lockf mkfifo mknod nice openpty posix_fadvise posix_fallocate pread preadv pwrite pwritev
        register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setpgid setpriority setsid statvfs
        sync sysconf O_CLOEXEC O_DIRECT O_DIRECTORY O_NOATIME O_NOFOLLOW O_SYNC""",
    signal: """alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait
        SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2""",
}
FILES = ("/proc", "/sys", "/dev/shm")


def hide_linux():
    """Take away modules, functions, constants, files and torch's OpenMP, which has another name elsewhere."""
    for name in MODULES:
        sys.modules[name] = None  # importing it raises ImportError
    for module, names in NAMES.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    io.open = builtins.open = _without_files(io.open)
    os.open, os.listdir, os.scandir = map(_without_files, (os.open, os.listdir, os.scandir))
    ctypes.CDLL = _without_libraries(ctypes.CDLL)


def _without_files(function):
    def opened(path=".", *arguments, **options):
        if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(FILES) and _is_for_us():
            raise FileNotFoundError(2, "No such file or directory", path)
        return function(path, *arguments, **options)

    return opened


def _without_libraries(function):
    def opened(name, *arguments, **options):
        if _is_for_us():
            raise OSError(f"{name}: no such library")
        return function(name, *arguments, **options)

    return opened


def _is_for_us():
    """Whether the first caller that is not the standard library is the package."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in sys.stdlib_module_names:
        frame = frame.f_back
    return frame.f_globals["__name__"].startswith("dendritree")


def play_windows_locks(flock, locked, free):
    """A `msvcrt` with the answers of the real one: `PermissionError` if the byte is locked."""
    played = ModuleType("msvcrt")
    played.LK_NBLCK, played.LK_UNLCK = 2, 0

    def locking(descriptor, mode, count):
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), count) == (2**30, 1), "the byte past the holder's name"
        try:
            flock(descriptor, locked if mode == played.LK_NBLCK else free)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    played.locking = locking
    sys.modules["msvcrt"] = played


def use_layers():
    """Both backends, with two threads: the same outputs and gradients."""
    from dendritree import DendriticLayer

    torch.set_num_threads(2)
    x = torch.randn(512, 64, requires_grad=True)
    answers = []
    for backend in ("fused", "eager"):
        torch.manual_seed(1)
        layer = DendriticLayer(64, 32, branching=4, wiring="random", fan_in=64, backend=backend)
        y = layer(x)
        answers.append([y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])])
    torch.testing.assert_close(*answers, rtol=1e-3, atol=1e-3)


def use_models(folder):
    """Fit, save and load."""
    import dendritree

    x = torch.randn(200, 64)
    model = dendritree.DendriticNetwork(64, [8], 2)
    history = dendritree.fit(model, (x, (x[:, 0] > 0).long()), dendritree.FitConfig(epochs=2))
    assert len(history.epochs) == 2
    dendritree.save(model, folder / "model")
    assert torch.equal(dendritree.load(folder / "model")(x), model(x))
    assert sorted(path.name for path in (folder / "model").iterdir()) == ["config.json", "weights.safetensors"]


def use_locks(folder, *, there):
    """One writer per folder where there are locks, told by its name; else an error that says so."""
    from dendritree.errors import DendritreeError
    from dendritree.files import Lock, NoLocksError

    path = folder / "lock"
    if not there:
        with pytest.raises(NoLocksError):
            Lock(path)
        return
    with Lock(path), pytest.raises(DendritreeError, match=f"in use by process {os.getpid()}$"):
        Lock(path)
    Lock(path).release()


def use_commands(folder):
    """A list, and a fit of a table, which is kept in a store while it runs."""
    from table_cases import houses

    from dendritree.__main__ import main

    houses().to_csv(folder / "houses.csv", index=False)
    small = ("--splits", "2", "--epochs", "1", "--budget", "0.3k", "--keep", "tree")
    for command in (
        ["models"],
        ["fit", str(folder / "houses.csv"), "--target", "price", "--out", str(folder / "fitted"), *small],
        ["predict", str(folder / "fitted"), str(folder / "houses.csv"), "--out", str(folder / "answers.csv")],
    ):
        sys.argv[1:] = command
        assert main() == 0, command


def lose_an_interrupt():
    """One that Python drops in a finalizer comes again."""
    from dendritree.interrupts import interrupts_remembered

    class Finalized:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), interrupts_remembered() as seen:
        Finalized()
        for _ in range(3000):  # a signal that another thread raises does not end a sleep
            time.sleep(0.01)
    assert len(seen) == 2


def main(folder):
    """Use the core where there are no locks, then where there are those of Windows."""
    flock = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
    hide_linux()
    use_layers()
    use_models(folder)
    use_locks(folder, there=False)
    lose_an_interrupt()
    play_windows_locks(*flock)
    use_models(folder)
    use_locks(folder, there=True)
    use_commands(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
