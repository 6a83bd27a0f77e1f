"""Which perceptrons are selected, and the error if there are none."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, convert
from dendritree.conversion.conversion import NOT_SELECTED
from dendritree.errors import OptionError


class Encoder(nn.Module):
    """Names as transformers have them: two layers, each with an attention projection and an MLP."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.Linear(12, 12)
            self.mlp = nn.Sequential(nn.Linear(12, 40), nn.GELU(), nn.Dropout(0.0), nn.Linear(40, 12))

        def forward(self, x):
            return x + self.mlp(self.attention(x))

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([self.Layer(), self.Layer()])
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


ALL = {"layers.0.attention", "layers.1.attention", "head"}
MLPS = [("layers.0.mlp.0", "layers.0.mlp.3"), ("layers.1.mlp.0", "layers.1.mlp.3")]
ALL.update(*MLPS)


@pytest.mark.parametrize(
    ("where", "modules"),
    [
        ("*.mlp.*", MLPS),
        ("layers.1.mlp", MLPS[1:]),
        ("layers.?.mlp.0", [("layers.0.mlp.0",), ("layers.1.mlp.0",)]),
        (["head", "layers.0.mlp"], [MLPS[0], ("head",)]),
        (nn.Sequential, MLPS),
        (Encoder.Layer, [("layers.0.attention",), MLPS[0], ("layers.1.attention",), MLPS[1]]),
        (lambda name, module: isinstance(module, nn.Linear) and module.out_features == 12 and "mlp" not in name,
         [("layers.0.attention",), ("layers.1.attention",)]),
        ("*", [("layers.0.attention",), MLPS[0], ("layers.1.attention",), MLPS[1], ("head",)]),
    ],
)  # fmt: skip
def test_where_selects_by_name_type_and_predicate(where, modules):
    model, report = convert(Encoder(), where=where)
    assert [change.modules for change in report.changes] == modules
    named = {name for names in modules for name in names}
    assert {each.reason for each in report.left_alone} <= {NOT_SELECTED}
    assert {each.module for each in report.left_alone} == ALL - named
    trees = {name for name, module in model.named_modules() if isinstance(module, DendriticLayer)}
    assert trees == {names[0] for names in modules}
    assert model(torch.randn(2, 3, 12)).shape == (2, 3, 5)


def test_by_default_feed_forward_blocks_are_replaced_and_the_rest_is_listed():
    _, report = convert(Encoder(), dry_run=True)
    assert [change.modules for change in report.changes] == MLPS
    assert {each.module for each in report.left_alone} == ALL.difference(*MLPS)
    assert all("not part of an MLP" in each.reason for each in report.left_alone)


def resnet():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 10))


def patches():
    """A vision transformer, whose convolution does not make it a CNN."""
    block = nn.TransformerEncoderLayer(16, 2, 64, batch_first=True)
    return nn.ModuleDict({"patches": nn.Conv2d(1, 16, 4, 4), "block": block, "head": nn.Linear(16, 10)})


@pytest.mark.parametrize(
    ("model", "replaced"),
    [(resnet, [("4",)]), (patches, [("block.linear1", "block.linear2")]), (lambda: nn.Linear(50, 7), [("",)])],
)
def test_the_only_linear_layer_of_a_cnn_is_its_head(model, replaced):
    assert [change.modules for change in convert(model())[1].changes] == replaced


def test_a_model_without_blocks_is_an_error_that_names_where():
    with pytest.raises(OptionError, match=r"cannot convert 0: not part of an MLP.* where="):
        convert(nn.Sequential(nn.Linear(20, 20), nn.LayerNorm(20), nn.Linear(20, 20)))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("*.mpl.*", r"matches no module.*did you mean '\*\.mlp\.\*'"),
        ("hed", r"did you mean 'head'"),
        ("layers.0.mlp.1", r"which has none"),
        (nn.GELU, r"which has none"),
        ([], r"where must have at least one"),
        (3, r"where must be a name pattern"),
    ],
)
def test_a_selection_of_nothing_is_an_error_that_helps(where, message):
    with pytest.raises(OptionError, match=message):
        convert(Encoder(), where=where)


def test_a_model_without_perceptrons_is_an_error():
    with pytest.raises(OptionError, match=r"convolutions=True"):
        convert(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()))
    with pytest.raises(OptionError, match=r"nn\.Module: got str"):
        convert("bert-base-uncased")
