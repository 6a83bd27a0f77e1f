"""What cannot be replaced is left alone and listed with the reason, or rejected if it was requested by name."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dendritree import convert
from dendritree.errors import OptionError
from dendritree.wiring import Tied


def with_spare(layer):
    """The layer beside one that can be converted."""
    return nn.ModuleDict({"it": layer, "spare": nn.Linear(20, 20)})


def shared():
    layer = nn.Linear(20, 20)
    return nn.ModuleDict({"it": layer, "again": layer, "spare": nn.Linear(20, 20)})


def tied():
    model = nn.ModuleDict({"embedding": nn.Embedding(30, 20), "it": nn.Linear(20, 30), "spare": nn.Linear(20, 20)})
    model["it"].weight = model["embedding"].weight
    return model


def hooked():
    layer = nn.Linear(20, 20)
    layer.register_forward_hook(lambda *_: None)
    return with_spare(layer)


class Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Reader(nn.Module):
    """Reads the weights of its layers in its forward pass, in three ways; sets them in its constructor."""

    def __init__(self):
        super().__init__()
        self.spare, self.it, self.deep = nn.Linear(20, 20), nn.Linear(20, 20), nn.Sequential(nn.Linear(20, 20))
        nn.init.zeros_(self.spare.weight)

    def forward(self, x):
        x = x.to(self.spare.weight.dtype)
        return self._inner(self.spare(x)) + self.deep(x)

    def _inner(self, x):
        return F.linear(x, self.it.weight.t())


def integer():
    layer = nn.Linear(20, 20)
    layer.weight = nn.Parameter(torch.zeros(20, 20, dtype=torch.int8), requires_grad=False)
    return with_spare(layer)


CASES = {
    "shared": (shared, "shared"),
    "tied": (tied, "tied: embedding.weight"),
    "hooks": (hooked, "hooks"),
    "lazy": (lambda: with_spare(nn.LazyLinear(20)), "lazy"),
    "weight norm": (lambda: with_spare(nn.utils.parametrizations.weight_norm(nn.Linear(20, 20))), "computed"),
    "integer": (integer, "int8"),
    "subclass": (lambda: with_spare(Scaled(20, 20)), "Scaled has its own forward"),
    "reader": (Reader, "Reader reads its .weight"),
    "too small": (lambda: with_spare(nn.Linear(2, 1)), "at least 3 parameters: its budget is 1"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_swapped_is_left_alone_with_the_reason(case):
    build, reason = CASES[case]
    model = build()
    converted, report = convert(model, where="*")
    assert [each.module for each in report.left_alone] == ["it"]
    assert reason in report.left_alone[0].reason
    with pytest.raises(OptionError, match="cannot convert it"):
        convert(model, where="it")
    assert type(dict(converted.named_modules())["it"]) is type(dict(model.named_modules())["it"])
    assert ("spare",) in [change.modules for change in report.changes]


def test_attention_keeps_its_projection():
    _, report = convert(nn.TransformerDecoderLayer(24, 2, 48))
    assert [(each.module, each.reason) for each in report.left_alone] == [
        (f"{name}.out_proj", "MultiheadAttention reads its .weight or .bias directly")
        for name in ("self_attn", "multihead_attn")
    ]


def test_where_nothing_can_be_swapped_all_reasons_are_given():
    model = nn.ModuleDict({f"a{i}": Scaled(20, 20) for i in range(5)})
    with pytest.raises(OptionError, match=r"cannot convert a0: .*; a1: .*; a2: .*; and 2 more"):
        convert(model, where="*")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "budget must be a share"),
        ({"budget": -3}, "budget must be an integer"),
        ({"wiring": "randon"}, "did you mean 'random'"),
        ({"branching": 1}, "branching must be"),
        ({"wiring": "shared"}, "got Shared"),
        ({"wiring": Tied(window=2)}, "got Tied"),
    ],
)
def test_bad_options_are_rejected_with_the_rule(options, message):
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 15))
    with pytest.raises(OptionError, match=message):
        convert(model, **options)


def test_a_model_that_cannot_be_copied_is_rejected():
    model = nn.Sequential(nn.Linear(20, 20))
    model.cache = model(torch.ones(20))  # a tensor with a history
    with pytest.raises(OptionError, match="deepcopy"):
        convert(model, where="*")


def test_a_budget_out_of_range_is_rejected_with_the_nearest_that_is_accepted():
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 15), nn.LayerNorm(15), nn.Linear(15, 15))
    with pytest.raises(OptionError, match=r"budget must be at least 127 to convert any layer here: got 5$"):
        convert(model, budget=5)
    assert len(convert(model, budget=127)[1].changes) == 1
    with pytest.raises(OptionError, match=r"budget must be at least 0\.04 to convert any layer here: got 0\.01$"):
        convert(model, budget=0.01)
    with pytest.raises(OptionError, match="budget must be at most the 3,215 parameters of the layers to convert"):
        convert(model, budget="4k")
