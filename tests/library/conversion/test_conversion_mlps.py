"""Layers form one MLP where a forward pass shows it; elsewhere they are taken one by one, and the model runs."""

import types

import pytest
import torch
import torch._dynamo  # its first import lists the functions of math, which torch.fx replaces while it traces
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dendritree import convert


class Two(nn.Module):
    """Two layers of 32 neurons, and what one may put between them or beside them."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(32, 32), nn.Linear(32, 32)
        self.act, self.drop, self.norm = nn.GELU(), nn.Dropout(0.0), nn.BatchNorm1d(32, affine=False)
        self.flag = True


def two(forward):
    """A module with the two layers and this forward."""
    return type("Own", (Two,), {"forward": forward})()


def one_variable(self, x):
    x = self.norm(x)
    x = self.fc1(x)
    x = F.relu(x)
    x = F.dropout(x, p=0.1, training=False)
    x = self.fc2(x)
    return F.log_softmax(x, dim=-1)


def in_a_method(self, x, scale=1.0, *, mask=None):
    def feed(x):
        with torch.enable_grad():
            return self.fc2(self.act(self.fc1(x).relu_()))

    return scale * (x if mask is None else mask) + feed(self.norm(x))


def recurrent(self, x):
    for _ in range(2):
        x = self.fc2(torch.tanh(self.fc1(x)))
    return x


@pytest.mark.parametrize(
    "forward",
    [
        lambda self, x: self.fc2(self.drop(F.relu(self.fc1(x)))),
        lambda self, x: x + self.fc2(F.logsigmoid(self.fc1(x))),
        one_variable,
        in_a_method,
        recurrent,
    ],
)
def test_a_chain_is_an_mlp_however_it_is_written(forward):
    converted, report = convert(two(forward))
    assert modules(report) == ["fc1 fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def added_in_place(self, x):
    h = F.relu(self.fc1(x))
    h += x
    return self.fc2(h)


def normed(self, x):
    x = F.relu(self.fc1(x))
    if self.flag:
        x = self.norm(x)
    return self.fc2(x)


def by_data(self, x):
    h = self.fc1(x)
    return self.fc2(F.relu(h) if h.sum() > 0 else F.relu(-h))


@pytest.mark.parametrize(
    "forward",
    [
        lambda self, x: self.fc2(x + F.relu(self.fc1(x))),
        lambda self, x: self.fc1(x) + F.relu(self.fc2(x)),
        lambda self, x: self.fc2(F.softmax(self.fc1(x), dim=-1)),
        lambda self, x: self.fc2(self.drop(self.fc1(x))),
        added_in_place,
        normed,
        by_data,
        "replaced on the object",
    ],
)
def test_what_may_be_no_chain_is_taken_layer_by_layer_and_runs(forward):
    model = two(one_variable if isinstance(forward, str) else forward)
    if isinstance(forward, str):
        model.forward = types.MethodType(added_in_place, model)
    converted, report = convert(model, where="*", budget=1.0)
    assert modules(report) == ["fc1", "fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def test_layers_that_a_module_around_them_uses_are_taken_one_by_one():
    class Outside(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp = two(lambda self, x: self.fc2(F.relu(self.fc1(x))))

        def forward(self, x):
            return self.mlp(x) + torch.relu(self.mlp.fc1(x))

    converted, report = convert(Outside(), where="*")
    assert modules(report) == ["mlp.fc1", "mlp.fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def test_tracing_neither_changes_the_model_nor_draws_numbers():
    def noisy(self, x):
        self.seen = self.fc1(x + torch.randn(32))
        return self.fc2(F.relu(self.seen))

    model, state = two(noisy), torch.get_rng_state()
    convert(model, dry_run=True)
    assert not hasattr(model, "seen")
    assert torch.equal(torch.get_rng_state(), state)


# ------------------------------------------------------------------------------------------------------- sequences

RELU = nn.ReLU()


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ((nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 20)), ["0 2"]),
        ((nn.Linear(20, 30), RELU, nn.Linear(30, 40), RELU, nn.Linear(40, 20)), ["0 2 4"]),
        ((nn.Flatten(), nn.Linear(20, 30), nn.Dropout(), nn.SiLU(), nn.Linear(30, 20)), ["1 4"]),
        ((nn.Sequential(nn.Linear(20, 30), nn.ReLU()), nn.Linear(30, 20)), ["0.0 1"]),
        ((nn.Linear(20, 30), nn.Linear(30, 20)), ["0", "1"]),  # no activation: not an MLP
        ((nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 20)), ["0", "3"]),
        ((nn.Linear(20, 30), nn.PReLU(30), nn.Linear(30, 20)), ["0", "2"]),  # has the width in it
    ],
)
def test_the_mlps_of_a_sequence(steps, parts):
    converted, report = convert(nn.Sequential(*steps), where="*")
    assert modules(report) == parts
    assert converted(torch.randn(3, 20)).shape == (3, 20)


def mlp():
    return nn.Sequential(nn.Linear(32, 40), nn.ReLU(), nn.Linear(40, 32))


class Nets(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.aux, self.nets = mlp(), nn.Linear(40, 32), nn.ModuleList([mlp(), mlp()])


class Whole(Nets):
    def forward(self, x):
        for number, net in enumerate(self.nets):
            x = x + number * net(x)
        return self.aux(torch.cat([self.net(x), x[:, :8]], dim=-1)) + self.nets[0](x)


class Handed(Nets):
    def forward(self, x):
        return checkpoint(self.net, x, use_reentrant=False) + self.nets[0](x)


class Sliced(Nets):
    def forward(self, x):
        return self.net(x) + self.aux(self.net[:2](x)) + sum(net(x) for net in self.nets)


class Looped(Nets):
    def forward(self, x):
        hidden = []
        for layer in self.net:
            x = layer(x)
            hidden.append(x)
        return x + self.aux(hidden[1]) + self.nets[0](x)


class Untraced(Nets):
    """Nobody can tell whether `aux` reads the hidden layer of `net`: it has its size."""

    def forward(self, x):
        return self.net(x) if x.sum() > 0 else self.aux(self.net[:2](x))


LISTED = ["nets.0.0 nets.0.2", "nets.1.0 nets.1.2"]
APART = ["nets.0.0", "nets.0.2", "nets.1.0", "nets.1.2"]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (Whole, ["net.0 net.2", "aux", *LISTED]),
        (Handed, ["net.0 net.2", "aux", *LISTED]),
        (Sliced, ["net.0", "net.2", "aux", *LISTED]),
        (Looped, ["net.0", "net.2", "aux", *LISTED]),
        (Untraced, ["net.0", "net.2", "aux", *APART]),
    ],
)
def test_a_sequence_of_which_a_part_is_used_is_taken_layer_by_layer(kind, parts):
    converted, report = convert(kind(), where="*")
    assert modules(report) == parts
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def test_a_sequence_in_code_that_cannot_be_traced_is_an_mlp_if_its_hidden_size_is_seen_nowhere_else():
    model = Untraced()
    del model.aux, model.nets
    assert modules(convert(model)[1]) == ["net.0 net.2"]


def modules(report):
    return [" ".join(change.modules) for change in report.changes]
