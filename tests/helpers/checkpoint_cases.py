"""Runs that are stopped and resumed, for the tests of checkpoints. Also imported by processes that get killed."""

import pytest
import torch
from torch import nn
from training_cases import figures, make_split, same_state

from dendritree import FitConfig, Rewiring, fit
from dendritree.models import DendriticNetwork
from dendritree.wiring import Local, Random

MODELS = {
    "plain": {"wiring": Random(seed=1)},
    "dropout": {"wiring": Random(seed=1), "dropout": 0.3, "synapse_dropout": 0.2},
    "batch norm": {"wiring": "strided", "norm": "batch", "hidden": [8, 6]},
    "layer norm, eager": {"wiring": "shared", "norm": "layer", "readout": "dendritic", "backend": "eager"},
    "drawn": {"wiring": "random", "dropout": 0.2},
    "rewired": {"wiring": "random", "norm": "batch", "synapse_dropout": 0.1},
    "rewired windows": {"wiring": Local(window=3, per="neuron")},
    "rewired by torch's chance": {"wiring": "random"},
    "wider": {"wiring": Random(seed=1), "hidden": [9]},
}


def make_network(name, seed=0):
    """A network whose weights (and wiring, if it is drawn) depend on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        options = {"in_features": 16, "hidden": [8], "out_features": 3, "fan_in": 6, **MODELS[name]}
        return DendriticNetwork(**options, output="logits", dtype=torch.float64)


def rewire_by_chance(run):
    """A user's own callback, without a seed of its own."""
    from dendritree.training.rewiring import rewire

    rewire(run.model.hidden[0], 0.3, run.optimizer)


def callbacks_of(name):
    if name == "rewired by torch's chance":
        return [rewire_by_chance]
    if name.startswith("rewired"):
        return [Rewiring(0.4, until=1.0, where="window" if "window" in name else "anywhere")]
    return []


class Stopped(Exception):  # noqa: N818  not an error of anything
    """What a test raises inside a run."""


def stop_by(error, epochs):
    """A callback that raises once that many epochs are over, whether or not they ran in this process."""

    def stop(run):
        if len(run.history.epochs) == epochs:
            raise error

    return stop


def outcome(model: nn.Module, history):
    return model.state_dict(), history.best_state, {key: list(map(str, v)) for key, v in figures(history).items()}


def run_through(name, config, **options):
    """A complete run without a stop, and its results."""
    model = make_network(name)
    history = fit(model, make_split(), config, callbacks=callbacks_of(name), **options)
    return outcome(model, history)


def assert_same(one, other):
    assert one[2] == other[2]
    assert same_state(one[0], other[0])
    assert same_state(one[1], other[1])


THREE_EPOCHS = FitConfig(epochs=3)


def bytes_after_two_epochs(path):
    """The checkpoint of a run that was stopped in its third and last epoch."""
    with pytest.raises(Stopped):
        fit(make_network("plain"), make_split(), THREE_EPOCHS, callbacks=[stop_by(Stopped, 3)], checkpoint=path)
    return path.read_bytes()
