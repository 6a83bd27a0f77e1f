"""Commands and `save`, stopped at random moments by SIGINT, SIGTERM and SIGKILL: whole files, and the same end.

After every stop the files are whole and those of the user untouched; the same command then resumes and ends with the
result of an undisturbed run. Commands run in processes that a fork server makes with everything imported, so that a
moment is one of their work; some run as a user starts them.
"""

import contextlib
import functools
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
from checkpoint_cases import make_network, outcome
from command_runs import ROOT
from compare_cases import trials_in
from full_disk import files_under
from fuzz_cases import Clock
from fuzz_world import QUICK_FIT, copy_of, made
from training_cases import make_split

import dendritree
from dendritree import FitConfig, MLNClassifier, fit
from dendritree.errors import DendritreeError
from dendritree_lab.cli import main
from dendritree_lab.studies.paper import reproduction as reproduce
from dendritree_lab.studies.paper.spec import read_specs

PRELOADED = [__name__, "pandas", "optuna", "matplotlib.pyplot", "scipy.stats", "rich.progress", "safetensors.torch"]
AS_A_USER = 0.1
"""How many of the commands are started as a user starts them, imports and all."""
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
NOTES = "a user's own file\n"
TRAINING = FitConfig(epochs=30, batch_size=5)
LONGEST = 150
"""Seconds after which a command hangs."""


# ------------------------------------------------------------------------------------------------ what is stopped


def result_of_fit(folder):
    return [(folder / "out" / name).read_bytes() for name in ("config.json", "weights.safetensors")]


def result_of_tune(folder):
    return [(folder / "out" / "model" / name).read_bytes() for name in ("config.json", "weights.safetensors")]


def result_of_run(folder):
    return repr(trials_in(folder / "out", with_weights=True))


def save_in_turn(folder):
    """Save one model and another under one name, without end."""
    while True:
        for branching in (4, 16):
            dendritree.save(saved(branching), folder / "out")


@functools.cache
def saved(branching):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MLNClassifier(16, 3, branching=branching)


def result_of_save(folder):
    """The folder holds one of the two models, whole; then save again."""
    if (folder / "out" / "config.json").exists():
        found, x = dendritree.load(folder / "out")(torch.ones(2, 16)), torch.ones(2, 16)
        assert any(torch.equal(found, saved(branching).eval()(x)) for branching in (4, 16)), "a mixture of two models"
    dendritree.save(saved(4), folder / "out")
    return result_of_fit(folder)


def train(folder):
    fit(make_network("rewired", 1), make_split(), TRAINING, checkpoint=folder / "out")


def result_of_training(folder):
    """The run, resumed from its checkpoint by a model with other weights."""
    model = make_network("rewired", 2 if (folder / "out").exists() else 1)
    return repr(outcome(model, fit(model, make_split(), TRAINING, checkpoint=folder / "out")))


SMALL_SEARCH = ["--trials", "2", "--steps", "6"]
COMMANDS = {
    "fit": (["fit", "houses.csv", "--target", "price", "--out", "out", *QUICK_FIT], result_of_fit),
    "fit --force": (["fit", "houses.csv", "--target", "price", "--out", "out", "--force", *QUICK_FIT], result_of_fit),
    "tune": (["tune", "digits:64", "--budget", "1k", "--out", "out", *SMALL_SEARCH], result_of_tune),
    "compare": (
        [
            *["compare", "digits:64", "--budgets", "500", "--families", "tree", "linear", "--run", "out"],
            *["--seeds", "2", "--backend", "here", *SMALL_SEARCH],
        ],
        result_of_run,
    ),
    "reproduce": (["reproduce", "--trials", "1", "--run", "out", "--backend", "here"], result_of_run),
}
NO_USERS = {"reproduce"}
"""What is small only because we replace the paper's tables."""
FUNCTIONS = {"save": (save_in_turn, result_of_save), "training": (train, result_of_training)}


def prepare(name, folder):
    """A folder with a table, and a file of the user's wherever that may be."""
    folder.mkdir()
    copy_of("houses.csv", folder)
    if name in ("fit --force", "save"):
        shutil.copytree(made("model"), folder / "out")
    if name not in ("fit", "training"):
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / "notes.txt").write_text(NOTES, encoding="utf-8")
    (folder / "notes.txt").write_text(NOTES, encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- processes


@functools.cache
def fork_server():
    """A process that has imported everything and computed nothing."""
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers"), str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def act(name, folder, specs, ready):
    """In a process of its own: the leader of its group, in the folder, its output in files."""
    os.setpgid(0, 0)
    os.chdir(folder)
    for number, stream in ((1, "out"), (2, "errors")):
        os.dup2(os.open(folder.parent / f"{stream}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
    torch.set_num_threads(1)
    reproduce.read_specs = functools.partial(read_specs, specs)
    status = 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # before or after the work of a command
        ready.send(True)
        if name in FUNCTIONS:
            FUNCTIONS[name][0](folder)
        else:
            status = main(COMMANDS[name][0])
    os._exit(status)


class Forked:
    """A command in a process of the fork server, which is ready to begin."""

    def __init__(self, name, folder):
        ours, theirs = fork_server().Pipe()
        self.process = fork_server().Process(target=act, args=(name, folder, made("specs"), theirs))
        self.process.start()
        self.pid = self.process.pid
        ours.recv()

    def wait(self, seconds):
        """The exit status; None while it runs."""
        self.process.join(seconds)
        return self.process.exitcode


class Started:
    """A command as a user starts it."""

    def __init__(self, name, folder):
        errors = (folder.parent / "errors.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dendritree", *COMMANDS[name][0]],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},  # as the undisturbed run
            stdout=subprocess.DEVNULL,
            stderr=errors,
            process_group=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        errors.close()
        self.pid = self.process.pid

    def wait(self, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode


def disturb(running, number, moment):
    """Send a signal to a command and all its processes at a moment, unless it is over before; its exit status."""
    try:
        if running.wait(moment) is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, number)
        Clock().waits(lambda seconds: running.wait(seconds) is not None, LONGEST)
        status = running.wait(0)
        assert status is not None, f"it still runs {LONGEST} s after {signal.Signals(number).name}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    return status


# --------------------------------------------------------------------------------------------------------------- checks


@functools.cache
def undisturbed(name):
    """The result of a run that nobody stopped, what it leaves, and how long it takes."""
    folder = made("taken").parent / f"undisturbed {name}"
    prepare(name, folder)
    start = time.monotonic()
    if name not in FUNCTIONS:
        assert disturb(Forked(name, folder), signal.SIGKILL, LONGEST) == 0, read_errors(folder)
    seconds = min(max(time.monotonic() - start, 0.5), 30.0)  # a machine may have been asleep
    result = finish(name, folder)
    return result, set(files_under(folder)), seconds


def finish(name, folder):
    return (FUNCTIONS[name] if name in FUNCTIONS else COMMANDS[name])[1](folder)


def read_errors(folder):
    path = folder.parent / "errors.txt"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def check_whole(folder):
    """After any stop: the user's files are there, and every model that is there can be read."""
    for path in folder.rglob("notes.txt"):
        assert path.read_text(encoding="utf-8") == NOTES, f"{path.name} of the user has changed"
    for config in folder.rglob("config.json"):
        if not any(part.startswith(".") for part in config.relative_to(folder).parts):
            dendritree.load(config.parent)
    if (folder / "out" / "trials.sqlite").exists():
        trials_in(folder / "out", with_weights=True)


def is_model(folder):
    try:
        return bool(dendritree.load(folder))
    except DendritreeError:
        return False


def check_end(name, status, number, folder):
    """How a command that got a signal may end."""
    errors = read_errors(folder)
    about = f"{name} ended with {status} after {signal.Signals(number).name}\n{errors[-3000:]}"
    assert status in {0, 130, -number}, about
    assert not re.search("Traceback|Exception ignored", errors), about
    if status == 130:
        assert errors.splitlines()[-1].startswith("dendritree: "), about


def run(seed, folder):
    """Stop one thing one to three times, then let it end."""
    choose = random.Random(seed)
    name = choose.choice([*COMMANDS, *FUNCTIONS])
    wanted, names, seconds = undisturbed(name)
    place = folder / "work"
    prepare(name, place)
    mine = set(place.rglob("notes.txt"))
    as_a_user = name in COMMANDS and name not in NO_USERS and choose.random() < AS_A_USER
    for _ in range(choose.choice([1, 1, 2, 3])):
        number = choose.choice(SIGNALS)
        start = Started if as_a_user else Forked
        moment = choose.uniform(0, 1.1 * seconds + (4 if as_a_user else 0))
        status = disturb(start(name, place), number, moment)
        check_end(name, status, number, place)
        assert set(place.rglob("notes.txt")) == mine, "a file of the user's is lost or doubled"
        check_whole(place)
        if name == "fit" and is_model(
            place / "out"
        ):  # it was over: the next one would be told that the folder is not new
            break
    else:
        if name in COMMANDS:
            status = disturb(Forked(name, place), signal.SIGKILL, LONGEST)
            assert status == 0, f"{name} does not resume: {read_errors(place)[-3000:]}"
    assert finish(name, place) == wanted, f"{name} ends with another result"
    left = set(files_under(place))
    assert left == names, f"{name} leaves {sorted(left - names)} and lacks {sorted(names - left)}"
    return name
