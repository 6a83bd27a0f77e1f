"""`Rewiring` in training loops of others; examples/other_trainers.py really trains with both of them."""

import copy
import sys
import types

import numpy as np
import pytest
import torch
from torch import nn

from dendritree import FitConfig, Rewiring, fit
from dendritree.errors import MissingExtraError, OptionError
from dendritree.models import DendriticNetwork
from dendritree.training import rewiring
from dendritree.training.examples import Examples, Split

EPOCHS = 4


@pytest.fixture
def net():
    torch.manual_seed(0)
    return DendriticNetwork(20, [6], 3, fan_in=8)


def wiring(net):
    return net.hidden[0].forest.synapse_inputs


def trained(net, after_epoch):
    """A loop of one's own, four epochs of one step each; the optimizer."""
    torch.manual_seed(1)
    x, y = torch.randn(30, 20), torch.randint(3, (30,))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)  # as `fit`: others differ in the last bits
    for epoch in range(EPOCHS):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after_epoch(optimizer, epoch)
    return optimizer


def test_a_loop_of_ones_own_moves_what_fit_moves(net):
    other = copy.deepcopy(net)
    torch.manual_seed(1)
    x, y = torch.randn(30, 20), torch.randint(3, (30,))
    config = FitConfig(epochs=EPOCHS, batch_size=None, lr=0.01, restore_best=False)
    fit(other, Split(Examples(x, y), Examples(x, y), Examples(x, y)), config, callbacks=[Rewiring(0.3)])
    before = wiring(net).copy()
    trained(net, lambda optimizer, epoch: Rewiring(0.3).after_epoch(net, [optimizer], epoch, EPOCHS))
    assert (wiring(net) != before).any()
    assert np.array_equal(wiring(net), wiring(other))


def test_every_optimizer_that_knows_a_moved_synapse_forgets_it(net):
    weight = net.hidden[0].weight
    optimizers = [torch.optim.Adam([parameter]) for parameter in net.parameters()]
    net(torch.randn(5, 20)).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    before = wiring(net).copy()
    Rewiring(0.3).after_epoch(net, optimizers, 0, EPOCHS)
    moved = net.hidden[0].forest.synapse_edges[before != wiring(net)]
    assert len(moved)
    assert (weight[moved] == 0).all()
    state = next(each.state[weight] for each in optimizers if weight in each.state)
    assert (state["exp_avg"][moved] == 0).all()
    assert (state["exp_avg"] != 0).any()


@pytest.fixture(params=["stand-in", pytest.param("transformers", marks=pytest.mark.slow)])
def trainer_callback(request, monkeypatch):
    """The class that callbacks of transformers extend: importing the package takes five seconds."""
    if request.param == "stand-in":
        package = types.ModuleType("transformers")
        package.TrainerCallback = type("TrainerCallback", (), {})
        monkeypatch.setitem(sys.modules, "transformers", package)
    from transformers import TrainerCallback

    return TrainerCallback


def test_the_callback_of_transformers_moves_what_a_loop_does(net, trainer_callback):
    other = copy.deepcopy(net)
    trained(other, lambda optimizer, epoch: Rewiring(0.3).after_epoch(other, [optimizer], epoch, EPOCHS))
    callback = Rewiring(0.3).for_transformers()
    assert isinstance(callback, trainer_callback)

    def after_epoch(optimizer, epoch):
        state = types.SimpleNamespace(epoch=epoch + 1.0, num_train_epochs=EPOCHS)
        wrapped = types.SimpleNamespace(optimizer=optimizer)  # as accelerate does
        callback.on_epoch_end(None, state, None, model=net, optimizer=wrapped)

    trained(net, after_epoch)
    assert np.array_equal(wiring(net), wiring(other))


@pytest.fixture
def lightning(monkeypatch):
    """A stand-in: importing the package takes seconds, and the example does."""
    package = types.ModuleType("pytorch_lightning")
    package.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "pytorch_lightning", package)
    monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)  # another test may have imported it
    return package


def test_the_callback_of_lightning_is_of_the_package_in_use(net, lightning):
    callback = Rewiring(0.3).for_lightning()
    assert isinstance(callback, lightning.Callback)
    other = copy.deepcopy(net)
    trained(other, lambda optimizer, epoch: Rewiring(0.3).after_epoch(other, [optimizer], epoch, EPOCHS))

    def after_epoch(optimizer, epoch):
        trainer = types.SimpleNamespace(max_epochs=EPOCHS, current_epoch=epoch, optimizers=[optimizer])
        callback.on_train_epoch_end(trainer, net)

    trained(net, after_epoch)
    assert np.array_equal(wiring(net), wiring(other))
    for unknown in (None, -1):
        with pytest.raises(OptionError, match="max_epochs of the Trainer must be a number of epochs"):
            callback.on_train_epoch_end(types.SimpleNamespace(max_epochs=unknown), net)


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(rewiring.importlib, "import_module", lambda _: __import__("no_such_package"))
    with pytest.raises(MissingExtraError, match=r"lightning is needed for its callback .*: pip install lightning"):
        Rewiring().for_lightning()
