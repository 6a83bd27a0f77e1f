"""Layers are the two of an MLP where the forward shows it; elsewhere they are taken one by one, and the model runs."""

import copy
import types
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dendritree import convert


class Two(nn.Module):
    """Two layers of 32 neurons, and what one may put between them or beside them."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(32, 32), nn.Linear(32, 32)
        self.act, self.activation, self.drop = nn.GELU(), F.silu, nn.Dropout(0.0)
        self.norm = nn.BatchNorm1d(32, affine=False)
        self.flag = True


class Nested(Two):
    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


class OneVariable(Two):
    def forward(self, x):
        x = self.norm(x)
        x = self.fc1(x)
        x = F.relu(x)
        x = F.dropout(x, p=0.1, training=False)
        x = self.fc2(x)
        return F.log_softmax(x, dim=-1)


class TwoVariables(Two):
    def forward(self, x):
        hidden: torch.Tensor = self.activation(self.fc1(x))
        return x + self.fc2(hidden)


class Method(Two):
    def forward(s, x):  # noqa: N805
        return x + s._feed(s.norm(x))

    def _feed(s, x):  # noqa: N805
        with torch.enable_grad():
            h = s.act(s.fc1(x).relu())
            y = s.fc2(h)
        return y + 0 * x


class Recurrent(Two):
    def forward(self, x):
        for _ in range(2):
            x = self.fc1(x)
            x = torch.tanh(x)
            x = self.fc2(x)
        return x


class Residual(Two):
    def forward(self, x):
        return self.fc2(x + F.relu(self.fc1(x)))


class Parallel(Two):
    def forward(self, x):
        return self.fc1(x) + F.relu(self.fc2(x))


class Reshaped(Two):
    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)).view(-1, 8, 4).flatten(1))


class Returned(Two):
    def forward(self, x):
        h = F.relu(self.fc1(x))
        y = self.fc2(h)
        return y + h


class ReturnedOnce(Two):
    def forward(self, x):
        h = F.relu(self.fc1(x))
        y = self.fc2(h)
        if not self.flag:
            h = torch.zeros_like(x)
        return y + h


class Added(Two):
    def forward(self, x):
        h = F.relu(self.fc1(x))
        h += x
        return self.fc2(h)


class Normed(Two):
    def forward(self, x):
        x = F.relu(self.fc1(x))
        if self.flag:
            x = self.norm(x)
        return self.fc2(x)


class After(Two):
    def forward(self, x):
        if self.flag:
            h = F.relu(self.fc1(x))
            x = self.fc2(h)
        return x + h


class Again(Two):
    def forward(self, x):
        return self.fc1(self.fc2(F.relu(self.fc1(x))))


class Softened(Two):
    def forward(self, x):
        return self.fc2(F.softmax(self.fc1(x), dim=-1))


class Straight(Two):
    def forward(self, x):
        return self.fc2(self.fc1(x))


class Shadowed(Two):
    def forward(self, x, F=types.SimpleNamespace(relu=lambda h: h + torch.ones(32))):  # noqa: B008, N803
        return self.fc2(F.relu(self.fc1(x)))


class Outside(nn.Module):
    """Uses what its MLP hides."""

    def __init__(self):
        super().__init__()
        self.mlp = Nested()

    def forward(self, x):
        return self.mlp(x) + torch.relu(self.mlp.fc1(x))


def patched():
    model = Nested()
    model.forward = types.MethodType(Residual.forward, model)
    return model


def unreadable():
    """A class whose source is nowhere."""
    scope = {"Two": Two, "F": F}
    exec("class Typed(Two):\n    def forward(self, x):\n        return self.fc2(x + F.relu(self.fc1(x)))", scope)
    return scope["Typed"]()


def modules(report):
    return [" ".join(change.modules) for change in report.changes]


@pytest.mark.parametrize("kind", [Nested, OneVariable, TwoVariables, Method, Recurrent])
def test_a_chain_is_an_mlp_however_it_is_written(kind):
    converted, report = convert(kind())
    assert modules(report) == ["fc1 fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


@pytest.mark.parametrize(
    "make",
    [
        Residual, Parallel, Reshaped, Returned, ReturnedOnce, Added, Normed, After, Again, Softened, Straight, Shadowed,
        patched, unreadable,
    ],
)  # fmt: skip
def test_what_may_be_no_chain_is_taken_layer_by_layer_and_runs(make):
    converted, report = convert(make(), budget=1.0)
    assert modules(report) == ["fc1", "fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def test_layers_that_a_module_around_them_uses_are_taken_one_by_one():
    converted, report = convert(Outside())
    assert modules(report) == ["mlp.fc1", "mlp.fc2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)


class Ours(nn.TransformerEncoderLayer):
    """With code of its own, elsewhere."""

    def _sa_block(self, x, *args, **options):
        return 0.5 * super()._sa_block(x, *args, **options)


def test_a_subclass_of_a_known_module_is_read():
    converted, report = convert(Ours(32, 4, 64, batch_first=True))
    assert modules(report) == ["linear1 linear2"]
    assert converted(torch.randn(2, 5, 32)).shape == (2, 5, 32)


# ------------------------------------------------------------------------------------------------------- sequences


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


class Sliced(Nets):
    def forward(self, x):
        return self.net(x) + self.aux(self.net[:2](x)) + sum(net(x) for net in self.nets)


class Indexed(Nets):
    def forward(self, x):
        return self.net[2](self.net[1](self.net[0](x))) + self.nets[1](x)


class Looped(Nets):
    def forward(self, x):
        hidden = []
        for layer in self.net:
            x = layer(x)
            hidden.append(x)
        return x + self.aux(hidden[1]) + self.nets[0](x)


class Handed(Nets):
    def forward(self, x):
        return checkpoint(self.net, x, use_reentrant=False) + self.nets[0](x)


class InLists(Nets):
    def forward(self, x):
        for net in self.nets:
            x = x + self.aux(net[:2](x))
        return self.net(x)


class InLoops(Nets):
    def forward(self, x):
        for number, net in enumerate(self.nets):
            for layer in net:
                x = layer(x) + number
        return self.net(x)


LISTED = ["nets.0.0 nets.0.2", "nets.1.0 nets.1.2"]
ONE_BY_ONE = ["net.0", "net.2", "aux"]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (Whole, ["net.0 net.2", "aux", *LISTED]),
        (Sliced, [*ONE_BY_ONE, *LISTED]),
        (Indexed, [*ONE_BY_ONE, *LISTED]),
        (Looped, [*ONE_BY_ONE, *LISTED]),
        (Handed, [*ONE_BY_ONE, *LISTED]),
        (InLists, ["net.0 net.2", "aux", "nets.0.0", "nets.0.2", "nets.1.0", "nets.1.2"]),
        (InLoops, ["net.0 net.2", "aux", "nets.0.0", "nets.0.2", "nets.1.0", "nets.1.2"]),
    ],
)
def test_a_sequence_that_is_opened_is_taken_layer_by_layer(kind, parts):
    converted, report = convert(kind())
    assert modules(report) == parts
    assert converted(torch.randn(3, 32)).shape == (3, 32)


def test_a_sequence_in_code_that_cannot_be_read_is_an_mlp_unless_its_hidden_size_is_seen_elsewhere():
    scope = {"nn": nn}
    exec("class Typed(nn.Module):\n    def forward(self, x):\n        return self.net(x)", scope)
    model = scope["Typed"]()
    model.net = mlp()
    assert modules(convert(model)[1]) == ["net.0 net.2"]
    model = copy.deepcopy(model)
    model.aux = nn.Linear(40, 32)
    assert modules(convert(model)[1]) == ONE_BY_ONE


@pytest.mark.parametrize("container", [lambda parts: nn.Sequential(OrderedDict(parts)), nn.ModuleDict])
def test_names_alone_make_no_mlp_of_what_a_container_holds(container):
    parts = {"fc1": nn.Linear(32, 40), "norm": nn.BatchNorm1d(40), "relu": nn.ReLU(), "fc2": nn.Linear(40, 32)}
    assert modules(convert(container(parts))[1]) == ["fc1", "fc2"]


class Stages(nn.Module):
    """A sequence of MLPs that is opened, and they are not."""

    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(mlp(), mlp())

    def forward(self, x):
        return [x := stage(x) for stage in self.stages][-1]


def test_a_sequence_within_one_that_is_opened_is_read_on_its_own():
    converted, report = convert(Stages())
    assert modules(report) == ["stages.0.0 stages.0.2", "stages.1.0 stages.1.2"]
    assert converted(torch.randn(3, 32)).shape == (3, 32)
