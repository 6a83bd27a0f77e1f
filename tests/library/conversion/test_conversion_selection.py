"""Which perceptrons are selected, and the error if there are none."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, convert
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


MLPS = [("layers.0.mlp.0", "layers.0.mlp.3"), ("layers.1.mlp.0", "layers.1.mlp.3")]


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
    assert report.left_alone == ()
    trees = {name for name, module in model.named_modules() if isinstance(module, DendriticLayer)}
    assert trees == {names[0] for names in modules}
    assert report.not_selected == 7 - sum(map(len, modules))
    assert model(torch.randn(2, 3, 12)).shape == (2, 3, 5)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("*.mpl.*", r"matches no module.*did you mean .*mlp"),
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
