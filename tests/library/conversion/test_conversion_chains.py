"""Layers of any name that a forward runs as an MLP are converted as one; elsewhere the report says why not."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dendritree import convert


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)
        self.act, self.drop = nn.GELU(), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.down(self.drop(self.act(self.up(x))))


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.middle, self.first = nn.Linear(48, 4), nn.Linear(64, 48), nn.Linear(32, 64)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = torch.tanh(self.middle(x))
        return self.last(x)


class Swish(Block):
    def forward(self, x):
        hidden = self.up(x)
        return self.down(hidden * torch.sigmoid(hidden))


class Normed(Block):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(128)

    def forward(self, x):
        return self.down(self.norm(self.act(self.up(x))))


def squared(x):
    return x * x


class OwnFunction(Block):
    def forward(self, x):
        return self.down(squared(self.up(x)))


class Linear(Block):
    def forward(self, x):
        return self.down(self.drop(self.up(x)))


class Twice(Block):
    def forward(self, x):
        return self.down(self.act(self.up(self.down(self.act(self.up(x))))))


class Gated(Block):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 128)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.o = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return self.o(torch.softmax(self.q(x) @ self.k(x).mT, -1) @ x)


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.blocks = nn.ModuleList(kind() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize(("kind", "names"), [(Block, ("up", "down")), (Three, ("first", "middle", "last"))])
def test_names_do_not_matter_where_the_forward_shows_an_mlp(kind, names):
    model = kind()
    converted, report = convert(model)
    assert [change.modules for change in report.changes] == [names]
    assert report.taken_apart == ()
    assert converted(torch.randn(3, 32)).shape == model(torch.randn(3, 32)).shape


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Swish, "the output of up goes to more than one place"),
        (OwnFunction, "squared between them is not a known activation"),
        (Linear, "there is no activation between them"),
        (Twice, "the forward pass does not call up in one place"),
    ],
)
def test_where_it_does_not_show_the_report_says_why_and_what_would_help(kind, why):
    model = Net(kind)
    report = convert(model, dry_run=True)[1]
    assert len(report.changes) == 4
    assert [each.modules for each in report.taken_apart] == [(f"blocks.{n}.up", f"blocks.{n}.down") for n in (0, 1)]
    text = " ".join(str(report).split())
    assert f"taken one by one: 2 x blocks.*.(up, down): {why}" in text
    assert 'blocks=[("up", "down")] takes them as one' in text
    assert report.taken_apart[0].blocks == ("up", "down")
    helped = convert(model, blocks=[report.taken_apart[0].blocks])[1]
    assert len(helped.changes) == 2
    assert helped.taken_apart == ()


@pytest.mark.parametrize("kind", [Normed, Gated])
def test_nothing_is_promised_where_the_hidden_size_is_used_elsewhere(kind):
    model = Net(kind)
    report = convert(model)[1]
    assert "something else next to them has their hidden size, 128" in " ".join(str(report).split())
    assert "blocks=" not in str(report)
    assert {len(change.modules) for change in convert(model, blocks=[("up", "down")])[1].changes} == {1}


def test_layers_that_do_not_widen_are_not_taken_for_an_mlp():
    assert convert(Net(Attention))[1].taken_apart == ()


def test_code_without_a_source_is_told_apart():
    space = {"nn": nn, "Block": Block}
    exec("class Hidden(Block):\n    def forward(self, x):\n        return self.down(self.act(self.up(x)))", space)
    (apart,) = convert(space["Hidden"]())[1].taken_apart
    assert apart.reason == "the source of the forward pass cannot be read"
    assert apart.blocks == ("up", "down")
