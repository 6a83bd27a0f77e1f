"""`save`, `fit` with a checkpoint and `compare`, killed at random moments: whole files, and the same result after."""

import contextlib
import functools
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import torch
from checkpoint_cases import make_network, outcome
from compare_cases import small_plan, trials_in
from training_cases import make_split

import dendritree
from dendritree import FitConfig, MLNClassifier, fit
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.fair import compare

TRAINING = FitConfig(epochs=30, batch_size=5)
SECONDS = {"save": 1.0, "fit": 1.0, "compare": 2.0}
"""How long the work takes at most before it is stopped."""


@functools.cache
def saved(branching):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MLNClassifier(16, 3, branching=branching).eval()


def save_in_turn(folder):
    """Save one model and another under one name, without end."""
    while True:
        for branching in (4, 16):
            dendritree.save(saved(branching), folder / "model")


def check_saved(folder):
    """The folder holds one of the two models, whole."""
    if not (folder / "model" / "config.json").exists():  # stopped before the first one
        return
    x = torch.ones(2, 16)
    y = dendritree.load(folder / "model")(x)
    assert any(torch.equal(y, saved(branching)(x)) for branching in (4, 16)), "a mixture of two models"


def train(folder):
    """Train, or resume with a model of other weights."""
    model = make_network("rewired", 2 if (folder / "checkpoint").exists() else 1)
    return repr(outcome(model, fit(model, make_split(), TRAINING, checkpoint=folder / "checkpoint")))


def run_comparison(folder):
    compare(folder / "run", small_plan(families=["tree", "linear"]), workers=Workers("here"))
    return repr(trials_in(folder / "run", with_weights=True))


RESUMED = {"fit": train, "compare": run_comparison}


@functools.cache
def undisturbed(name):
    return RESUMED[name](Path(tempfile.mkdtemp(prefix="dendritree-fuzz-")))


def act(name, folder, ready):
    """In a process of its own: do the work until somebody stops it."""
    torch.set_num_threads(1)
    ready.send(True)
    save_in_turn(folder) if name == "save" else RESUMED[name](folder)


def stop(name, folder, number, moment):
    """Start the work in a new process and send it a signal at a moment, unless it is over before."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe()
    process = context.Process(target=act, args=(name, folder, theirs))
    process.start()
    ours.recv()
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)
    process.join()


def run(seed, folder):
    """Stop one thing one to three times, then let it end."""
    choose = random.Random(seed)
    name = choose.choice(list(SECONDS))
    for _ in range(choose.choice([1, 1, 2, 3])):
        stop(name, folder, choose.choice([signal.SIGTERM, signal.SIGKILL]), choose.uniform(0, SECONDS[name]))
        if name == "save":
            check_saved(folder)
    if name in RESUMED:
        assert RESUMED[name](folder) == undisturbed(name), f"{name} ends with another result"
    return name
