"""Which perceptrons are selected, which of them form an MLP, and the error if there are none."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, convert
from dendritree.conversion.blocks import group
from dendritree.conversion.perceptrons import find_perceptrons
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
        ("*.mlp", MLPS),
        ("layers.1.mlp", MLPS[1:]),
        ("layers.?.mlp.0", [("layers.0.mlp.0",), ("layers.1.mlp.0",)]),
        ("head", [("head",)]),
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
        ("*.mpl.*", r"'\*\.mpl\.\*' matches no module of the model; did you mean 'layers\.0\.mlp\.0' or"),
        ("hed", r"'hed' matches no module of the model; did you mean 'head'"),
        ("Head", r"matches no module of the model; did you mean 'head'"),
        ("layers.0.mlp.1", r"'layers\.0\.mlp\.1' matches layers\.0\.mlp\.1, which has none"),
        (["head", "nothing"], r"'nothing' matches no module"),
        (nn.LSTM, r"LSTM matches no module of the model; try 'layers\.0\.attention'"),
        (nn.GELU, r"GELU matches layers\.0\.mlp\.1, which has none"),
        (lambda *_: False, r"matches no module"),
        ([], r"where must have at least one"),
        (3, r"where must be a name pattern, a class of modules, a function .*, or several: got 3$"),
        (dict, r"where must be a name pattern"),
        (None, r"where must be a name pattern"),
    ],
)  # fmt: skip
def test_a_selection_of_nothing_is_an_error_that_helps(where, message):
    with pytest.raises(OptionError, match=message):
        convert(Encoder(), where=where)


def test_a_model_without_perceptrons_is_an_error():
    with pytest.raises(OptionError, match=r"the model must have an nn\.Linear or a Conv1D .*: it has none"):
        convert(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()))
    with pytest.raises(
        OptionError, match=r"model must be an nn\.Module: got Linear|model must be an nn\.Module: got str"
    ):
        convert("bert-base-uncased")


# ------------------------------------------------------------------------------------------------------------ blocks


class Own(nn.Module):
    """Linear layers of these sizes by name, with a forward of its own."""

    def __init__(self, **sizes):
        super().__init__()
        for name, size in sizes.items():
            self.add_module(name, nn.LayerNorm(size) if isinstance(size, int) else nn.Linear(*size))


class Chain(Own):
    """fc1, fc2, ... one after the other."""

    def forward(self, x):
        x = self.fc2(torch.relu(self.fc1(x)))
        return self.out(x) if hasattr(self, "out") else x


class LongChain(Own):
    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


SHARED_RELU = nn.ReLU()


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4)), ["0 2"]),
        (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 5)), ["0 2 4"]),
        (nn.Sequential(nn.Linear(2, 3), SHARED_RELU, nn.Linear(3, 4), SHARED_RELU, nn.Linear(4, 5)), ["0 2 4"]),
        (nn.Sequential(nn.Flatten(), nn.Linear(2, 3), nn.Dropout(), nn.SiLU(), nn.Linear(3, 4)), ["1 4"]),
        (nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), nn.Linear(3, 4)), ["0.0 1"]),
        (nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)), ["0", "1"]),  # no activation: not an MLP
        (nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.Linear(3, 4)), ["0", "2"]),
        (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 4)), ["0", "3"]),
        (nn.Sequential(nn.Linear(2, 6), nn.GLU(), nn.Linear(3, 4)), ["0", "2"]),  # halves the width
        (nn.Sequential(nn.Linear(2, 3), nn.PReLU(3), nn.Linear(3, 4)), ["0", "2"]),  # has the width in it
        (nn.Sequential(nn.Linear(2, 3), nn.Softmax(-1), nn.Linear(3, 4)), ["0", "2"]),
        (Chain(fc1=(2, 3), fc2=(3, 4)), ["fc1 fc2"]),
        (LongChain(fc1=(2, 3), fc2=(3, 4), fc3=(4, 5)), ["fc1 fc2 fc3"]),
        (Chain(fc1=(2, 3), fc2=(3, 4), out=(4, 5)), ["fc1 fc2", "out"]),
        (Chain(fc1=(2, 3), fc2=(3, 4), norm=3), ["fc1 fc2"]),  # a norm of the hidden size, but not between them
        (Chain(fc1=(2, 3), fc2=(4, 5)), ["fc1", "fc2"]),  # the sizes do not follow one another
        (Own(fc1=(2, 3), fc2=(3, 4)), ["fc1", "fc2"]),  # no forward: nobody can tell
        (Own(first=(2, 3), second=(3, 4)), ["first", "second"]),  # names that say nothing
        (nn.TransformerEncoderLayer(6, 2, 6), ["linear1 linear2"]),  # with norms of that size, but known
        (nn.TransformerDecoderLayer(6, 2, 8), ["linear1 linear2"]),
    ],
)
def test_layers_of_one_mlp_are_found(model, parts):
    perceptrons = find_perceptrons(model)[0]
    found = group(model, {name: each for name, each in perceptrons.items() if "attn" not in name})
    assert [" ".join(each.name for each in part) for part in found] == parts


def test_an_mlp_of_which_one_layer_is_meant_is_two_layers():
    _, report = convert(Chain(fc1=(20, 30), fc2=(30, 40)), where="fc1")
    assert [change.modules for change in report.changes] == [("fc1",)]


def test_a_user_names_the_layers_of_his_own_mlp():
    _, report = convert(Own(up=(20, 60), down=(60, 20)), blocks=[("up", "down")])
    assert [change.modules for change in report.changes] == [("up", "down")]
    for beside in ({"norm": 60}, {"gate": (20, 60)}):  # of the hidden size, and perhaps between them
        _, report = convert(Own(up=(20, 60), down=(60, 20), **beside), blocks=[("up", "down")], where=["up", "down"])
        assert [change.modules for change in report.changes] == [("up",), ("down",)]
    for wrong in (["up"], "up", [("up",)], [("up", 3)]):
        with pytest.raises(OptionError, match="blocks must have the names of two layers or more each"):
            convert(Own(up=(20, 60), down=(60, 20)), blocks=wrong)
