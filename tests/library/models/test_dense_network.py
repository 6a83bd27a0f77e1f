"""DenseNetwork, the control of DendriticNetwork: its equation in plain loops, its counts by hand, its errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from dendritree import count, create_model, load, save
from dendritree.errors import OptionError
from dendritree.layers.linear import BatchNorm, Dropout, make_linear
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


def test_the_default_is_relu():
    assert [type(step) for step in DenseNetwork(5, [4]).hidden][1:] == [nn.ReLU]


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


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("leading", [(), (6,), (6, 4), (2, 3, 4)])
def test_leading_dimensions_do_not_change_what_is_normalised(norm, leading):
    net = DenseNetwork(5, [4], 2, norm=norm, output="logits")
    net(torch.randn(50, 5) * 3 + 1)  # running statistics that are not 0 and 1
    x = torch.randn(*leading, 5)
    torch.testing.assert_close(net.eval()(x), net(x.reshape(-1, 5)).reshape(*leading, 2))


def test_dropout_silences_hidden_neurons_while_training_and_scales_the_rest():
    net = DenseNetwork(16, [60], 3, dropout=0.4, activation=None)
    x = torch.randn(40, 16)
    kept, all_of_them = net.train().hidden(x), net.eval().hidden(x)
    silent = kept == 0
    assert 0.3 < silent.float().mean() < 0.5
    torch.testing.assert_close(kept[~silent], all_of_them[~silent] / 0.6)


@given(st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_how_inputs_lie_in_memory_changes_nothing(batch, ins, norm):
    """Features-major inputs, as a tree gives them, take another path: same outputs, same gradients."""
    net = DenseNetwork(ins, [4, 3], 2, norm="layer" if norm else None, dtype=torch.float64, output="logits")
    x = torch.randn(batch, ins, dtype=torch.float64)
    found = []
    for form in (x.clone(), x.t().contiguous().t()):
        form.requires_grad_()
        net.zero_grad()
        y = net(form)
        y.square().sum().backward()
        found.append([y.detach(), form.grad, *(parameter.grad.clone() for parameter in net.parameters())])
    for plain, other in zip(*found, strict=True):
        torch.testing.assert_close(plain, other)


def test_any_leading_dimensions_will_do():
    net, x = DenseNetwork(5, [4], 3, output="logits"), torch.randn(2, 7, 5)
    torch.testing.assert_close(net(x), torch.stack([net(x[0]), net(x[1])]))
    assert net(x[0, 0]).shape == (3,)


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


def test_the_documented_network():
    net = DenseNetwork(784, [32, 16], 10, output="probabilities")
    found = count(net)
    assert (found.weights, found.biases, found.total) == (784 * 32 + 32 * 16 + 160, 58, 25_818)
    assert found.multiply_adds == found.weights
    assert net(torch.randn(2, 784)).sum(1).tolist() == pytest.approx([1.0, 1.0])


def test_weights_start_by_he_s_law_and_biases_from_nothing():
    net = DenseNetwork(400, [300, 200], 100)
    for module in [*linears(net), net.readout]:
        assert module.weight.std().item() == pytest.approx(math.sqrt(2 / module.in_features), rel=0.05)
        assert abs(module.weight.mean().item()) < 0.01
        assert not module.bias.any()


def test_torch_s_seed_governs_the_weights():
    states = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        states.append(DenseNetwork(8, [6, 5], 3).state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not torch.equal(states[0]["hidden.0.weight"], states[2]["hidden.0.weight"])


def test_device_and_dtype_reach_every_parameter():
    net = DenseNetwork(8, [6], 3, norm="batch", device="meta", dtype=torch.float64)
    assert {(str(p.device), p.dtype) for p in net.parameters()} == {("meta", torch.float64)}


# ----------------------------------------------------------------------------------------------------- trained, saved


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "batch"}, {"norm": "layer"}, {"dropout": 0.3}, {"activation": "tanh"}, {"hidden": [6, 5, 4]}],
    ids=repr,
)
def test_every_option_trains_a_step(options):
    net = DenseNetwork(**{"in_features": 16, "hidden": [6], "out_features": 3, "output": "logits", **options})
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    F.cross_entropy(net.train()(torch.randn(12, 16)), torch.arange(12) % 3).backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    for name, parameter in net.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert not torch.equal(parameter, before[name]), name


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "batch", "dropout": 0.1, "hidden": [6, 5]}, {"activation": nn.ELU, "output": "logits"}],
    ids=repr,
)
def test_a_saved_network_is_loaded_exactly(options, tmp_path):
    net = create_model("dense-network", **{"in_features": 16, "hidden": [6], "out_features": 3, **options})
    net.train()(torch.randn(9, 16))  # moves the statistics of a batch norm
    save(net, tmp_path / "net")
    torch.manual_seed(99)
    loaded, x = load(tmp_path / "net"), torch.randn(5, 16)
    assert isinstance(loaded, DenseNetwork)
    assert torch.equal(loaded(x), net.eval()(x))


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": []}, r"hidden must be a list with the neurons of one layer or more: got \[\]"),
        ({"hidden": 6}, r"hidden must be a list with the neurons of one layer or more: got 6"),
        ({"hidden": "64"}, r"hidden must be a list with the neurons of one layer or more: got '64'"),
        ({"hidden": [6, 0]}, r"hidden must be an integer of at least 1: got 0"),
        ({"hidden": [2.5]}, r"hidden must be an integer of at least 1: got 2.5"),
        ({"in_features": 0}, r"in_features must be an integer of at least 1: got 0"),
        ({"out_features": -1}, r"out_features must be an integer of at least 1: got -1"),
        ({"norm": "group"}, r"norm must be one of 'batch', 'layer': got 'group'"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\): got 1.0"),
        ({"dropout": math.nan}, r"dropout must be a probability in \[0, 1\): got nan"),
        ({"activation": "rleu"}, r"activation must be one of .*: got 'rleu'; did you mean 'relu'\?"),
        ({"output": "logit"}, r"output must be one of .*: got 'logit'; did you mean 'logits'\?"),
    ],
    ids=repr,
)
def test_wrong_options_are_refused_by_their_rule(options, message):
    with pytest.raises(OptionError, match=message):
        DenseNetwork(**{"in_features": 16, "hidden": [6], **options})


def test_the_registry_refuses_what_a_dense_network_has_not():
    with pytest.raises(OptionError, match=r"an argument of model 'dense-network' must be one of .*: got 'fan_in'"):
        create_model("dense-network", in_features=4, hidden=[3], fan_in=2)
    with pytest.raises(OptionError, match="model 'dense-network' needs hidden: got in_features"):
        create_model("dense-network", in_features=4)


def test_a_linear_layer_gives_the_same_for_features_major_input_and_so_do_its_gradients():
    torch.manual_seed(0)
    linear = make_linear(20, 3, None, torch.float64)
    x = torch.randn(20, 7, dtype=torch.float64).t()
    found = []
    for entry in (x.clone().requires_grad_(), x.contiguous().requires_grad_()):
        assert entry.is_contiguous() == bool(found)
        linear.zero_grad()
        y = linear(entry)
        y.square().sum().backward()
        found.append((y, entry.grad, linear.weight.grad.clone(), linear.bias.grad.clone()))
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain)
