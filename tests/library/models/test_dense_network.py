"""DenseNetwork, the control of DendriticNetwork: its equation in plain loops, its counts by hand, its errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import create_model
from dendritree.errors import OptionError
from dendritree.layers.linear import BatchNorm, Dropout
from dendritree.models import DenseNetwork


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def linears(net):
    return [step for step in net.hidden if isinstance(step, nn.Linear)]


def layer(rows, module):
    """A dense layer as plain loops."""
    weight, bias = module.weight.tolist(), module.bias.tolist()
    return [
        [sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(weight, bias, strict=True)] for x in rows
    ]


ACTIVATIONS = {
    "relu": lambda v: max(v, 0.0),
    "leaky_relu": lambda v: v if v > 0 else 0.1 * v,
    "tanh": math.tanh,
    None: lambda v: v,
}


# ----------------------------------------------------------------------------------------------------------- equation


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [[4], [4, 3], [3, 5, 2]], ids=str)
@pytest.mark.parametrize("out_features", [1, 3])
def test_a_network_is_its_layers_one_after_the_other(activation, hidden, out_features):
    options = {"activation": activation, "dtype": torch.float64}
    logits = DenseNetwork(5, hidden, out_features, output="logits", **options)
    net = DenseNetwork(5, hidden, out_features, output="probabilities", **options)
    with torch.no_grad():
        for parameter in logits.parameters():
            parameter.normal_()
    net.load_state_dict(logits.state_dict())
    x = torch.randn(6, 5, dtype=torch.float64)
    rows = x.tolist()
    for module in linears(logits):
        rows = [[ACTIVATIONS[activation](value) for value in row] for row in layer(rows, module)]
    expected = torch.tensor(layer(rows, logits.readout), dtype=torch.float64)
    torch.testing.assert_close(logits(x), expected)
    exponentials = expected.exp()
    likely = (
        exponentials / (1 + exponentials) if out_features == 1 else exponentials / exponentials.sum(1, keepdim=True)
    )
    torch.testing.assert_close(net(x), likely)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_normalisation_comes_after_the_activation_and_dropout_after_it(norm):
    net = DenseNetwork(5, [4, 3], 2, norm=norm, dropout=0.25, output="logits")
    kind = {"batch": BatchNorm, "layer": nn.LayerNorm}[norm]
    assert [type(step) for step in net.hidden][1:4] == [nn.ReLU, kind, Dropout]
    assert [type(step) for step in net.hidden][5:] == [nn.ReLU, kind, Dropout]
    assert [type(step) for step in DenseNetwork(5, [4], dropout=0.0).hidden][1:] == [nn.ReLU]
    x = y = torch.randn(50, 5)
    for module in linears(net):
        y = torch.relu(y @ module.weight.T + module.bias)
        if norm == "layer":
            y = (y - y.mean(1, keepdim=True)) / (y.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        else:
            y = y / math.sqrt(1 + 1e-5)  # fresh running statistics: mean 0, variance 1
    torch.testing.assert_close(net.eval()(x), y @ net.readout.weight.T + net.readout.bias)


# ------------------------------------------------------------------------------------------------------ sizes and init


@given(
    st.integers(1, 40),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(1, 12),
    st.sampled_from([None, "batch", "layer"]),
)
def test_parameters_are_those_counted_by_hand(ins, hidden, outs, norm):
    net = create_model("dense-network", in_features=ins, hidden=hidden, out_features=outs, norm=norm, device="meta")
    expected, inputs = 0, ins
    for neurons in hidden:
        expected += neurons * (inputs + 1) + (2 * neurons if norm else 0)
        inputs = neurons
    assert sum(parameter.numel() for parameter in net.parameters()) == expected + outs * (inputs + 1)


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": []},
        {"hidden": "64"},
        {"in_features": 0},
        {"norm": "group"},
        {"dropout": math.nan},
        {"output": "logit"},
    ],
    ids=repr,
)
def test_invalid_options_are_rejected(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        DenseNetwork(**{"in_features": 16, "hidden": [6], **options})
