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


def stand_in(monkeypatch, name, base):
    """A package with this class alone: importing the real one takes seconds, and the example does."""
    package = types.ModuleType(name)
    setattr(package, base, type(base, (), {}))
    monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)  # another test may have imported it
    return getattr(package, base)


def call_transformers(callback, net, optimizer, epoch):
    state = types.SimpleNamespace(epoch=epoch + 1.0, num_train_epochs=EPOCHS)
    wrapped = types.SimpleNamespace(optimizer=optimizer)  # as accelerate does
    callback.on_epoch_end(None, state, None, model=net, optimizer=wrapped)


def call_lightning(callback, net, optimizer, epoch):
    trainer = types.SimpleNamespace(max_epochs=EPOCHS, current_epoch=epoch, optimizers=[optimizer])
    callback.on_train_epoch_end(trainer, net)


@pytest.mark.parametrize(
    ("package", "base", "make", "call"),
    [
        ("transformers", "TrainerCallback", Rewiring.for_transformers, call_transformers),
        ("pytorch_lightning", "Callback", Rewiring.for_lightning, call_lightning),
    ],
)
def test_callbacks_of_other_packages_move_what_a_loop_does(package, base, make, call, net, monkeypatch):
    base = stand_in(monkeypatch, package, base)
    other = copy.deepcopy(net)
    trained(other, lambda optimizer, epoch: Rewiring(0.3).after_epoch(other, [optimizer], epoch, EPOCHS))
    callback = make(Rewiring(0.3))
    assert isinstance(callback, base)
    trained(net, lambda optimizer, epoch: call(callback, net, optimizer, epoch))
    assert np.array_equal(wiring(net), wiring(other))


def test_lightning_must_know_the_number_of_epochs(net, monkeypatch):
    stand_in(monkeypatch, "pytorch_lightning", "Callback")
    with pytest.raises(OptionError, match="max_epochs"):
        Rewiring().for_lightning().on_train_epoch_end(types.SimpleNamespace(max_epochs=-1), net)


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(rewiring.importlib, "import_module", lambda _: __import__("no_such_package"))
    with pytest.raises(MissingExtraError, match="pip install lightning"):
        Rewiring().for_lightning()
