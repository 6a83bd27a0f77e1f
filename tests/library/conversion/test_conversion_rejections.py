"""What cannot be replaced is left alone and listed with the reason, or rejected if it was requested by name."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

from dendritree import convert
from dendritree.errors import OptionError


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


def tied_by_memory():
    model = with_spare(nn.Linear(20, 20))
    model["view"] = nn.Linear(20, 20)
    model["view"].weight = nn.Parameter(model["it"].weight.data)
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
    "shared": (shared, r"it is shared: the same module is again"),
    "tied": (tied, r"its weights are tied: embedding\.weight is the same tensor"),
    "tied by memory": (tied_by_memory, r"its weights are tied: view\.weight is the same tensor"),
    "hooks": (hooked, r"it has hooks"),
    "lazy": (lambda: with_spare(nn.LazyLinear(20)), r"it is lazy and has no size yet"),
    "weight norm": (
        lambda: with_spare(nn.utils.parametrizations.weight_norm(nn.Linear(20, 20))),
        r"its weight is computed from others",
    ),
    "pruned": (
        lambda: with_spare(prune.identity(nn.Linear(20, 20), "weight")),
        r"its weight is computed from others",
    ),
    "integer": (integer, r"its weights are of type int8"),
    "quantized": (
        lambda: with_spare(torch.ao.nn.quantized.dynamic.Linear(20, 20)),
        r"its weights are quantized \(Linear\)",
    ),
    "subclass": (lambda: with_spare(Scaled(20, 20)), r"Scaled has its own forward"),
    "reader": (Reader, r"Reader reads its \.weight or \.bias directly"),
    "too small": (lambda: with_spare(nn.Linear(2, 1)), r"trees here have at least 3 parameters: its budget is 1"),
}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")  # what torch says of its own quantized layers
@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_swapped_is_left_alone_with_the_reason(case):
    build, reason = CASES[case]
    model = build()
    converted, report = convert(model, dry_run=case == "pruned")  # torch cannot copy a pruned layer
    left = {each.module: each.reason for each in report.left_alone}
    assert "it" in left
    assert "spare" not in left
    with pytest.raises(OptionError, match=f"^cannot convert it: {reason}"):
        convert(model, where="it")
    assert type(dict(converted.named_modules())["it"]) is type(dict(model.named_modules())["it"])
    assert ("spare",) in [change.modules for change in report.changes]
    assert f"it: {left['it']}"[:60] in str(report)


def test_setting_weights_in_a_constructor_and_asking_for_their_type_is_no_reading():
    _, report = convert(Reader())
    assert [each.module for each in report.left_alone] == ["it"]


def test_attention_keeps_its_projection():
    _, report = convert(nn.TransformerDecoderLayer(24, 2, 48))
    assert [(each.module, each.reason) for each in report.left_alone] == [
        (f"{name}.out_proj", "MultiheadAttention reads its .weight or .bias directly")
        for name in ("self_attn", "multihead_attn")
    ]


def test_where_nothing_can_be_swapped_all_reasons_are_given():
    model = nn.ModuleDict({f"a{i}": Scaled(20, 20) for i in range(5)})
    with pytest.raises(OptionError, match=r"cannot convert a0: Scaled has .*; a1: .*; a2: .* own forward; and 2 more$"):
        convert(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, r"budget must be a share in \(0, 1\] or an integer number of parameters: got 0\.0"),
        ({"budget": 1.5}, r"budget must be a share"),
        ({"budget": float("nan")}, r"budget must be a share"),
        ({"budget": -3}, r"budget must be an integer of at least 1: got -3"),
        ({"budget": "many"}, r"budget must be an integer number of parameters, such as 9000, 9k or 1\.5M: got 'many'"),
        ({"budget": None}, r"budget must be an integer"),
        ({"budget": True}, r"budget must be an integer"),
        ({"budget": 5}, r"cannot convert 0: trees here have at least 127 parameters: its budget is 5; 2: "),
        ({"wiring": "randon"}, r"wiring must be one of .*; did you mean 'random'\?"),
        ({"branching": 1}, r"branching must be an integer of at least 2: got 1"),
        ({"branching": "automatic"}, r"branching must be one of 'auto'"),
        ({"wiring": "shared", "budget": 0.01}, r"trees here have at least \d+ parameters: its budget is 32"),
        ({"wiring": "shared", "branching": [2, 2]}, r"fan_in must be at most 4 for branching \[2, 2\]: got 64"),
    ],
)
def test_bad_options_are_rejected_with_the_rule(options, message):
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 15))
    with pytest.raises(OptionError, match=message):
        convert(model, **options)


def test_a_model_that_cannot_be_copied_is_rejected():
    model = nn.Sequential(nn.Linear(20, 20))
    model.cache = model(torch.ones(20))  # a tensor with a history
    with pytest.raises(OptionError, match=r"the model must be one that copy\.deepcopy can copy: "):
        convert(model)
