"""Random command lines from the parsers' own options: a status that means something, a sentence, never a traceback."""

import contextlib
import importlib
import os
import random
import re
import signal
import subprocess
import sys

from command_runs import ROOT
from full_disk import files_under
from fuzz_cases import outputs_of
from fuzz_world import QUICK_FIT, copy_of

from dendritree_lab.cli import COMMANDS, main

STATUSES = {0, 1, 2, 130}
SECONDS = 4
"""How long a command may run before it gets a Ctrl-C."""
IMPORTED_FIRST = [
    "torch._dynamo",
    "numba",
    "onnxruntime",
    "matplotlib.pyplot",
    "pandas",
    "scipy.stats",
    "optuna",
    "sklearn.svm",
]
"""Packages that do not survive a Ctrl-C in the middle of their import, for the commands after it in one process."""
AS_PROCESS = 0.04
"""How many of the commands run in a process of their own."""
UNTOUCHED = "taken"
"""A folder that is not ours: whatever the command, its file stays."""
PRESENT = [
    *["model", "network", "sequential", "own", "fitted", "comparison", "reproduction"],
    *["houses.csv", "houses.parquet", "pets", UNTOUCHED],
]
BROKEN = ["loop", "dangling", "pipe", "empty.csv", "empty folder"]

PATHS = [*PRESENT, *BROKEN, "new", "new/deep/folder", "houses.csv/inside", "/dev/null", "/dev/full", "/proc/version"]
HOSTILE = [
    "", " ", "-", "--", "-1", "0", "1", "2.5", "1e3", "nan", "inf", "-inf", "1e999", "0x10", "1_000", "\u0663",
    "\uff19", "none", "None", "true", "[]", "{}", "%s", "{0}", "$HOME", "~", "../x", ".", "..", "*", "a b", "é" * 9,
    "caf\udce9", "line\nbreak", "\t", "\x1b[31m", "x" * 300, "y/" * 2000, "9" * 30, "-" + "9" * 30, "9" * 5000,
    "digits:1:2", "mnist:-1", "digits:" + "9" * 30, "auto", "9k", "1.5M", "0k", "--help", "--version", "--seed", "sqlite:///x.db",
    "tcp://127.0.0.1:1", "random", "tree", "csv", "png",
]  # fmt: skip
"""Values that an option may or may not take."""

VALID = {
    "table": ["houses.csv", "houses.parquet"],
    "model": ["model", "network", "sequential", "own", "fitted", "fitted"],
    "file": ["new.onnx"],
    "run": ["comparison", "reproduction"],
    "path": ["model", "network", "sequential", "reproduction"],
    "--out": ["new", "new", "new/deep/folder", "model", UNTOUCHED],
    "--run": ["new", "new", "comparison", UNTOUCHED],
    "in_features": ["16", "64", "1024"],
    "out_features": ["1", "10"],
    "--branching": ["2", "32", "16,8", "4,4"],
    "--wiring": ["shared", "partition", "random", "local"],
    "pattern": ["*", "conv-*", "mln"],
    "action": ["list", "get", "verify"],
    "names": ["digits", "california-housing"],
    "tables": ["binary", "multiclass-mlp"],
    "--protocol": ["paper", "full"],
    "--draw": ["once", "per-trial"],
    "--trials": ["1", "2"],
    "--seeds": ["1", "2"],
    "--steps": ["1", "3"],
    "--hours": ["1e-9", "1"],
    "--workers": ["1"],
    "--backend": ["here"],
    "tasks": ["digits:64", "pets"],
    "data": ["digits:64", "pets"],
    "--budget": ["500", "1k"],
    "--budgets": ["500"],
    "--families": ["linear", "tree", "dense"],
    "--target": ["price", "dear", "town"],
    "--task": ["auto", "regression"],
    "--keep": ["best", "tree", "linear"],
    "--neurons": ["tree", "sparse"],
    "--splits": ["2"],
    "--epochs": ["1"],
    "--seed": ["0", "7"],
    "--port": ["0"],
    "--image": ["4x4", "none"],
    "--data": ["digits", "pets"],
    "--pixels": ["unit"],
    "--export": ["csv", "parquet"],
    "--format": ["svg", "png"],
    "--study": ["mine"],
    "--storage": ["sqlite:///new.db"],
    "--data-dir": [UNTOUCHED],
}
ALWAYS = {"tasks", "tables", "--trials", "--seeds", "--steps", "--families", "--epochs", "--splits", "--backend"}
"""Options whose defaults would train for hours, or in many processes."""


def value(option, choose):
    """A value for an option: mostly one that it takes, else any."""
    if choose.random() < 0.9:
        return choose.choice(VALID.get(option.name, PATHS))
    return choose.choice([*HOSTILE, *PATHS])


def command_line(choose):
    """A random command with random options and values."""
    name = choose.choice(list(COMMANDS))
    words = [choose.choice(HOSTILE) if choose.random() < 0.03 else name]
    by_position, others = [], []
    for option in COMMANDS[name].OPTIONS:
        named, required = option.name.startswith("-"), option.settings.get("required")
        likely = 0.97 if not named or required or option.name in ALWAYS else 0.3
        if choose.random() > likely and (option.name not in ALWAYS or choose.random() < 0.5):
            continue
        values = []
        if option.settings.get("action") != "store_true":
            many = option.settings["nargs"] in ("+", "*")
            values = [value(option, choose) for _ in range(choose.choice([1, 1, 2, 3]) if many else 1)]
        (others if named else by_position).append([option.name, *values] if named else values)
    choose.shuffle(others)
    groups = [*others, *by_position] if choose.random() < 0.1 else [*by_position, *others]
    words += [word for group in groups for word in group]
    if name == "view":
        words.append("--no-browser")
    elif name in ("compare", "reproduce") and "--backend" not in words:
        words += ["--backend", "here"]
    elif name == "fit" and choose.random() < 0.7:
        words += QUICK_FIT
    return words


def make_folder(folder, words):
    """The things that a command line names, one that it should leave alone, and paths that lead nowhere."""
    named = {word.partition("/")[0] for word in words}
    for name in PRESENT:
        if name in named or name == UNTOUCHED:
            copy_of(name, folder)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere/at/all")
    os.mkfifo(folder / "pipe")
    (folder / "empty.csv").touch()
    (folder / "empty folder").mkdir()


@contextlib.contextmanager
def ctrl_c_after(seconds):
    """Ctrl-C in this process, unless the block is over before; again later, because Python may lose one."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds, 5 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(words, folder):
    """Exit status, output and errors of a command in this process, run in a folder, with streams as a terminal's."""
    for package in IMPORTED_FIRST:
        importlib.import_module(package)
    here = os.open(".", os.O_RDONLY)
    files = [folder.parent / f"{folder.name}-{stream}.txt" for stream in ("out", "errors")]
    os.chdir(folder)
    try:
        with (
            files[0].open("w", encoding="utf-8") as out,
            files[1].open("w", encoding="utf-8", errors="backslashreplace") as errors,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
            ctrl_c_after(SECONDS),
        ):
            try:
                status = main(words)
            except SystemExit as end:  # argparse ends this way
                status = end.code or 0
        return status, *(file.read_text(encoding="utf-8") for file in files)
    finally:
        os.fchdir(here)
        os.close(here)
        for file in files:
            file.unlink()


def stream(kind, stack):
    """A file to write to that has no room, or that nobody reads."""
    if kind == "full":
        return stack.enter_context(open("/dev/full", "wb"))  # noqa: PTH123  a device
    reading, writing = os.pipe()
    os.close(reading)
    stack.callback(os.close, writing)
    return writing


def call_process(words, folder, choose):
    """The same in a process of its own, whose streams may be full, closed or in another encoding; errors that nobody
    could read are None."""
    words = [word for word in words if "\0" not in word]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | choose.choice([{}, {}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
    kinds = [
        choose.choice(["pipe", "pipe", "full", "unread", "closed"]),
        choose.choice(["pipe"] * 5 + ["full", "closed"]),
    ]

    def begin():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, kind in enumerate(kinds, 1):
            if kind == "closed":
                os.close(number)

    with contextlib.ExitStack() as stack:
        out, errors = (subprocess.PIPE if kind in ("pipe", "closed") else stream(kind, stack) for kind in kinds)
        process = subprocess.Popen(
            [sys.executable, "-m", "dendritree", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
            preexec_fn=begin,
        )
        stack.callback(process.kill)
        try:
            out, errors = process.communicate(timeout=choose.uniform(1, 3 * SECONDS))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            out, errors = outputs_of(process, 60)
    status = (
        130 if process.returncode == -signal.SIGINT else process.returncode
    )  # it was over, but for Python's own end
    said = None if kinds[1] != "pipe" else errors.decode(errors="replace")
    return status, (out or b"").decode(errors="replace"), said


def check(words, status, errors):
    """What must hold for every command line."""
    about = f"{words!r}: status {status}\n{(errors or '')[-3000:]}"
    assert status in STATUSES, about
    if errors is None:
        return
    assert not re.search("Traceback|Exception ignored|Warning", errors), about
    if status in (2, 130):
        lines = errors.rstrip("\n").split("\n")
        said = [place for place, line in enumerate(lines) if line.startswith("dendritree")]
        assert said, about
        assert len(said) <= (9 if words[0] == "data" else 2), about
        assert len(lines) - said[-1] <= 2, about


def run(seed, folder):
    """One command line in a folder of good and bad things."""
    choose = random.Random(seed)
    words = command_line(choose)
    folder = folder / "here"
    folder.mkdir()
    make_folder(folder, words)
    mine = files_under(folder / UNTOUCHED)
    as_process = words[0] == "view" or choose.random() < AS_PROCESS
    status, _, errors = call_process(words, folder, choose) if as_process else call(words, folder)
    check(words, status, errors)
    now = files_under(folder / UNTOUCHED)
    assert {name: now.get(name) for name in mine} == mine, f"{words!r} changed a file of the user's"
    return f"status {status}"
