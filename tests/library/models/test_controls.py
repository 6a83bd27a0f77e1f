import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree.errors import OptionError
from dendritree.layers.linear import Linear
from dendritree.models import MLP, ConvMLN, ConvMLP, Perceptrons


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


# --------------------------------------------------------------------------------------------------------- equations


@pytest.mark.parametrize("out_features", [1, 3])
@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_mlp_is_the_paper_s_equation(out_features, output):
    net = randomize(MLP(5, out_features, hidden=4, output=output, dtype=torch.float64))
    x = torch.randn(10, 5, dtype=torch.float64)
    expected = [linear(relu(linear(row, net.hidden)), net.readout) for row in x.tolist()]
    if output == "probabilities":
        expected = [probabilities(row) for row in expected]
    torch.testing.assert_close(net(x), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("out_features", [1, 3])
@pytest.mark.parametrize("output", ["probabilities", "logits"])
def test_perceptrons_are_one_linear_unit_per_output(out_features, output):
    net = randomize(Perceptrons(5, out_features, output=output, dtype=torch.float64))
    x = torch.randn(10, 5, dtype=torch.float64)
    expected = [linear(row, net.units) for row in x.tolist()]
    if output == "probabilities":
        expected = [probabilities(row) for row in expected]
    torch.testing.assert_close(net(x), torch.tensor(expected, dtype=torch.float64))


def test_conv_mlp_feeds_the_cnn_of_conv_mln_to_an_mlp():
    dendritic, control = ConvMLN(branching=16), ConvMLP(hidden=11, output="logits").eval()
    assert [repr(step) for step in control.cnn] == [repr(step) for step in dendritic.cnn]
    x = torch.randn(3, 1, 32, 32)
    features = control.cnn(x)
    assert features.shape == (3, 256)
    expected = [linear(relu(linear(row, control.head.hidden)), control.head.readout) for row in features.tolist()]
    torch.testing.assert_close(control(x), torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_conv_mlp_probabilities_are_the_softmax_of_its_logits():
    logits, net = ConvMLP(4, hidden=5).eval(), ConvMLP(4, hidden=5, output="probabilities").eval()
    net.load_state_dict(logits.state_dict())
    x = torch.randn(3, 1, 32, 32)
    torch.testing.assert_close(net(x), torch.tensor([probabilities(row) for row in logits(x).tolist()]))


@given(leading=st.lists(st.integers(0, 3), max_size=3), out_features=st.sampled_from([1, 3]))
def test_any_leading_dimensions(leading, out_features):
    x = torch.randn(*leading, 6)
    for net in (MLP(6, out_features, hidden=4), Perceptrons(6, out_features)):
        assert net(x).shape == (*leading, out_features)
        for sample, y in zip(x.reshape(-1, 6), net(x).reshape(-1, out_features), strict=True):
            torch.testing.assert_close(net(sample), y)


# ------------------------------------------------------------------------------------------------------- He's law


def linears_of(model):
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


@pytest.mark.parametrize(
    ("build", "expected_fan_ins"),
    [
        (lambda: Perceptrons(800, 300), {"units": 800}),
        (lambda: MLP(400, 300, hidden=700), {"hidden": 400, "readout": 700}),
        (lambda: ConvMLP(300, hidden=700), {"head.hidden": 256, "head.readout": 700}),
    ],
    ids=["perceptrons", "mlp", "conv-mlp"],
)
def test_weights_start_from_he_s_law_and_biases_from_zero(build, expected_fan_ins):
    linears = linears_of(build())
    assert {name: linear.in_features for name, linear in linears.items()} == expected_fan_ins
    for name, fan_in in expected_fan_ins.items():
        z = linears[name].weight.detach().double() * math.sqrt(fan_in / 2)  # standard normal if the law holds
        # At least 179,200 values: the bounds are five standard errors or more, and far from a uniform law's values.
        assert z.mean().item() == pytest.approx(0, abs=0.012)
        assert z.std().item() == pytest.approx(1, abs=0.009)
        assert (z**4).mean().item() == pytest.approx(3, abs=0.12)  # 1.8 for a uniform law
        assert (linears[name].bias == 0).all()


def test_two_models_start_from_different_weights():
    assert not torch.equal(MLP(8, 3, hidden=4).hidden.weight, MLP(8, 3, hidden=4).hidden.weight)


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


def test_conv_mlp_dropout_acts_on_the_features():
    net, x = ConvMLP(hidden=50, dropout=0.5, output="logits").train(), torch.randn(4, 1, 32, 32)
    assert torch.equal(net.cnn(x), net.cnn(x))
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


# ----------------------------------------------------------------------------------------------------- bad arguments

BUILD = {
    "perceptrons": lambda **o: Perceptrons(**{"in_features": 6, "out_features": 3, **o}),
    "mlp": lambda **o: MLP(**{"in_features": 6, "out_features": 3, "hidden": 4, **o}),
    "conv-mlp": lambda **o: ConvMLP(**{"out_features": 3, "hidden": 4, **o}),
}


@pytest.mark.parametrize(
    ("model", "argument"),
    [
        ("perceptrons", "in_features"),
        ("perceptrons", "out_features"),
        ("mlp", "in_features"),
        ("mlp", "out_features"),
        ("mlp", "hidden"),
        ("conv-mlp", "out_features"),
        ("conv-mlp", "hidden"),
    ],
)
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "4", None])
def test_a_size_must_be_a_positive_integer(model, argument, value):
    with pytest.raises(OptionError, match=rf"{argument} must be an integer of at least 1: got {value!r}"):
        BUILD[model](**{argument: value})


@pytest.mark.parametrize("model", BUILD)
@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5, math.nan, "0.4", None])
def test_dropout_must_be_a_probability(model, value):
    with pytest.raises(OptionError, match=rf"dropout must be a probability in \[0, 1\): got {value!r}"):
        BUILD[model](dropout=value)


@pytest.mark.parametrize("model", BUILD)
@pytest.mark.parametrize(
    ("value", "hint"), [("probability", "; did you mean 'probabilities'"), ("log", "; did you mean 'logits'"), (3, "")]
)
def test_output_must_be_known(model, value, hint):
    with pytest.raises(OptionError, match=rf"output must be one of 'logits', 'probabilities': got {value!r}{hint}"):
        BUILD[model](output=value)


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_nn_linear_for_features_major_inputs_too(bias):
    layer, x = Linear(5, 3, bias=bias, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64).t()
    assert x.stride() == (1, 4)
    torch.testing.assert_close(layer(x), nn.functional.linear(x.contiguous(), layer.weight, layer.bias))
