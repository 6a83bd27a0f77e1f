"""The controls of the paper: their equations in plain loops, the law of their weights, dropout."""

import math

import pytest
import torch
from torch import nn

from dendritree.errors import OptionError
from dendritree.layers.linear import Linear
from dendritree.models import MLP, ConvMLP, DenseNetwork, Perceptrons


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def randomize(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def linear(x, module):
    """A dense layer as a plain loop over its rows."""
    rows = zip(module.weight.tolist(), module.bias.tolist(), strict=True)
    return [sum(w * value for w, value in zip(row, x, strict=True)) + bias for row, bias in rows]


def relu(values):
    return [max(value, 0.0) for value in values]


def probabilities(values):
    """Sigmoid of one value, softmax of more."""
    if len(values) == 1:
        return [1 / (1 + math.exp(-values[0]))]
    exponentials = [math.exp(value) for value in values]
    return [value / sum(exponentials) for value in exponentials]


# -------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize(
    "build",
    [
        lambda p: Perceptrons(2000, 3, dropout=p, output="logits"),
        lambda p: MLP(2000, 3, hidden=4, dropout=p, output="logits"),
    ],
    ids=["perceptrons", "mlp"],
)
def test_dropout_silences_inputs_while_training_only(build):
    net = build(0.25)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1.0)  # positive everywhere: every ReLU is open, every gradient is a dropout factor
    kept_gain = (4 / 3) * (1 if isinstance(net, Perceptrons) else 4)  # 1 / (1 - p) times the paths to an output
    x = torch.rand(4, 2000, requires_grad=True)
    gains = [torch.autograd.grad(net(x)[:, :1].sum(), x)[0] for _ in range(2)]
    kept = gains[0] != 0
    torch.testing.assert_close(gains[0][kept], torch.full((int(kept.sum()),), kept_gain))
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
    assert not torch.equal(gains[0], gains[1])
    net.eval()
    (gain,) = torch.autograd.grad(net(x)[:, :1].sum(), x)
    torch.testing.assert_close(gain, torch.full_like(gain, kept_gain * 3 / 4))


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_nn_linear_for_features_major_inputs_too(bias):
    layer, x = Linear(5, 3, bias=bias, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64).t()
    assert x.stride() == (1, 4)
    torch.testing.assert_close(layer(x), nn.functional.linear(x.contiguous(), layer.weight, layer.bias))


@pytest.mark.parametrize("out_features", [1, 3])
@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_controls_compute_the_equations_of_the_paper(out_features, output):
    mlp = randomize(MLP(5, out_features, hidden=4, output=output, dtype=torch.float64))
    units = randomize(Perceptrons(5, out_features, output=output, dtype=torch.float64))
    x = torch.randn(10, 5, dtype=torch.float64)
    for net, equation in (
        (mlp, lambda row: linear(relu(linear(row, mlp.hidden)), mlp.readout)),
        (units, lambda row: linear(row, units.units)),
    ):
        expected = [equation(row) for row in x.tolist()]
        if output == "probabilities":
            expected = [probabilities(row) for row in expected]
        torch.testing.assert_close(net(x), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("build", "fan_ins"),
    [
        (lambda: Perceptrons(800, 300), {"units": 800}),
        (lambda: MLP(400, 300, hidden=700), {"hidden": 400, "readout": 700}),
        (lambda: ConvMLP(300, hidden=700), {"head.hidden": 256, "head.readout": 700}),
        (lambda: DenseNetwork(400, [500], 400), {"hidden.0": 400, "readout": 500}),
    ],
    ids=["perceptrons", "mlp", "conv-mlp", "dense-network"],
)
def test_weights_start_from_he_s_law_and_biases_from_zero(build, fan_ins):
    linears = {name: module for name, module in build().named_modules() if isinstance(module, nn.Linear)}
    assert {name: module.in_features for name, module in linears.items()} == fan_ins
    for name, fan_in in fan_ins.items():
        z = linears[name].weight.detach().double() * math.sqrt(fan_in / 2)  # standard normal if the law holds
        # At least 179,200 values: the bounds are five standard errors or more, and far from a uniform law's values.
        assert z.mean().item() == pytest.approx(0, abs=0.012)
        assert z.std().item() == pytest.approx(1, abs=0.009)
        assert (z**4).mean().item() == pytest.approx(3, abs=0.12)  # 1.8 for a uniform law
        assert (linears[name].bias == 0).all()


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (Perceptrons, {"in_features": 0}),
        (MLP, {"hidden": 2.0}),
        (MLP, {"dropout": 1.0}),
        (MLP, {"output": "log"}),
        (ConvMLP, {"hidden": None}),
    ],
)
def test_invalid_options_are_rejected(build, options):
    sizes = {Perceptrons: {"in_features": 6}, MLP: {"in_features": 6, "hidden": 4}, ConvMLP: {"hidden": 4}}[build]
    with pytest.raises(OptionError, match=next(iter(options))):
        build(**sizes | options)
