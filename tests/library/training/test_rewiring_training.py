"""Rewiring as a callback of fit: how much moves when, what it needs, and that training continues."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from training_cases import digits, make_split, same_state

from dendritree import DendriticLayer, FitConfig, MLNClassifier, Rewiring, fit
from dendritree.errors import OptionError
from dendritree.models import DendriticNetwork
from dendritree.training import evaluate
from dendritree.training.examples import Split
from dendritree.wiring import Random, Tied


def make_net(seed=0, **options):
    torch.manual_seed(seed)
    given = {"in_features": 16, "hidden": [10], "out_features": 3, "fan_in": 10, "wiring": "random"}
    return DendriticNetwork(**{**given, **options}, output="logits", dtype=torch.float64)


class Sources:
    """A callback that keeps the wiring of every layer after each epoch."""

    def __init__(self):
        self.seen = []

    def __call__(self, run):
        self.seen.append([m.forest.source.copy() for m in run.model.modules() if hasattr(m, "forest")])


# ---------------------------------------------------------------------------------------------------------- annealing


@pytest.mark.parametrize(
    ("fraction", "until", "epochs"), [(0.3, 1.0, 10), (0.1, 0.75, 20), (0.5, 0.5, 4), (0.9, 0.3, 7)]
)
def test_the_share_falls_along_half_a_cosine_and_then_is_nothing(fraction, until, epochs):
    rewiring = Rewiring(fraction, until=until)
    for epoch in range(epochs):
        angle = min(math.pi / 2, math.pi * epoch / (until * epochs) / 2)
        expected = fraction * math.cos(angle) ** 2  # (1 + cos 2a) / 2 = cos^2 a
        assert rewiring.share(epoch, epochs) == pytest.approx(expected, abs=1e-12)
    assert rewiring.share(0, epochs) == fraction
    shares = [rewiring.share(epoch, epochs) for epoch in range(epochs)]
    assert shares == sorted(shares, reverse=True)


def changed(before, after):
    return int((before != after).sum())


@pytest.mark.parametrize("every", [1, 2, 3])
def test_each_epoch_moves_the_share_of_that_epoch(every):
    net, epochs, rewiring = make_net(fan_in=16), 8, Rewiring(0.5, until=0.75, every=every)
    before, after = Sources(), Sources()
    fit(net, make_split(), FitConfig(epochs=epochs), callbacks=[before, rewiring, after])
    for epoch in range(epochs):
        share = rewiring.share(epoch, epochs) if epoch % every == 0 else 0.0
        # ten neurons of sixteen synapses; a dendrite reads four of sixteen inputs, so each synapse finds another one
        assert changed(before.seen[epoch][0], after.seen[epoch][0]) == 10 * math.floor(16 * share)
    assert changed(after.seen[5][0], after.seen[-1][0]) == 0
    assert changed(before.seen[0][0], after.seen[-1][0]) > 0


def test_all_layers_that_can_move_do_and_each_by_its_own_chance():
    net = make_net(hidden=[10, 10, 10], in_features=10, fan_in=10, wiring=[Random(seed=1), "strided", Random(seed=1)])
    before, after = Sources(), Sources()
    split = make_split()
    small = Split(*(type(part)(part.x[:, :10], part.y) for part in (split.train, split.val, split.test)))
    fit(net, small, FitConfig(epochs=3), callbacks=[before, Rewiring(0.5), after])
    moved = [changed(a, b) for a, b in zip(before.seen[0], after.seen[0], strict=True)]
    assert moved == [50, 0, 50]
    assert not np.array_equal(after.seen[0][0], after.seen[0][2])


def test_rewiring_is_decided_by_seed_epoch_and_weights():
    runs = []
    for seed in (0, 0, 1):
        sources = Sources()
        fit(make_net(), make_split(), FitConfig(epochs=3), callbacks=[Rewiring(0.3, seed=seed), sources])
        torch.rand(7)  # nothing else of chance matters
        np.random.default_rng().random()
        runs.append(np.concatenate([layer for epoch in sources.seen for layer in epoch]))
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


# ----------------------------------------------------------------------------------------------------------- training


def test_the_best_epoch_comes_back_with_the_wiring_it_had():
    net, states = make_net(), []

    def note(run):
        states.append({key: value.clone() for key, value in run.model.state_dict().items()})

    history = fit(net, make_split(), FitConfig(epochs=6, lr=0.3), callbacks=[note, Rewiring(0.5, until=1.0)])
    assert same_state(net.state_dict(), states[history.best.epoch])
    assert evaluate(net, make_split().val)[0] == history.best.val_loss


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("fraction", [0.5, 0.0])  # even if nothing would move
def test_a_model_without_layers_to_rewire_is_rejected(fraction):
    ruled = MLNClassifier(16, 3, branching=4, output="logits", dtype=torch.float64)
    for net, where in ((ruled, "anywhere"), (make_net(hidden=[10, 8]), "window")):
        before = copy.deepcopy(net.state_dict())
        with pytest.raises(OptionError, match="got none"):
            fit(net, make_split(), FitConfig(epochs=2), callbacks=[Rewiring(fraction, where=where)])
        assert same_state(net.state_dict(), before)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("fraction", [1.0, -0.1, "0.1"]),
        ("until", [0.0, 1.5, math.nan, "half", None, True]),
        ("every", [0]),
        ("where", ["nearby"]),
        ("seed", [-1, 0.5]),
    ],
)
def test_wrong_options_are_rejected_when_the_callback_is_made(name, values):
    for value in values:
        with pytest.raises(OptionError, match=f"^{name} must be"):
            Rewiring(**{name: value})


def test_a_model_that_cannot_be_rewired_is_rejected_before_the_first_epoch():
    model = nn.Sequential(
        DendriticLayer(64, 16, branching=[4], wiring="random"),
        DendriticLayer(16, 16, branching=[2, 4], wiring=Tied(2, 1)),
        nn.Linear(16, 10),
    )
    before, sources, epochs = copy.deepcopy(model.state_dict()), [layer.forest.source for layer in model[:2]], []
    with pytest.raises(OptionError, match="tied"):
        fit(model, digits(), FitConfig(epochs=2), callbacks=[epochs.append, Rewiring(0.3)])
    assert epochs == []
    with pytest.raises(OptionError, match="tied"):
        Rewiring(0.3).after_epoch(model, [], 0, 2)
    assert same_state(before, model.state_dict())
    assert all(layer.forest.source is source for layer, source in zip(model[:2], sources, strict=True))
