"""The models of the paper: neurons computed by hand, the CNN of the appendix, dropout of single synapses."""

import math

import pytest
import torch
from torch.nn import functional as F

from dendritree.models import ConvMLN, MLNBinaryClassifier, MLNClassifier


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def leaky(value):
    return value if value > 0 else 0.1 * value


def softmax(values):
    exponentials = [math.exp(value - max(values)) for value in values]
    return [value / sum(exponentials) for value in exponentials]


def tree_of_four(x, weight, bias):
    """The paper's neuron with b = 2 on four inputs: two dendrites, then the root."""
    left = leaky(weight[0] * x[0] + weight[1] * x[1] + bias[0])
    right = leaky(weight[2] * x[2] + weight[3] * x[3] + bias[1])
    return leaky(weight[4] * left + weight[5] * right + bias[2])


def randomize(model):
    """Give every parameter, biases too, a value that shows when it is left out."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


# ------------------------------------------------------------------------------------------------------ the neurons


def test_binary_logit_is_the_hand_computed_tree_with_its_root_activation():
    net = MLNBinaryClassifier(4, branching=2, output="logits", dtype=torch.float64)
    weight, bias = [0.5, -1.0, 1.5, 0.7, 1.0, -1.3], [0.1, -0.2, 0.3]
    with torch.no_grad():
        net.layer.weight.copy_(torch.tensor(weight, dtype=torch.float64))
        net.layer.bias.copy_(torch.tensor(bias, dtype=torch.float64))
    x = torch.randn(20, 4, dtype=torch.float64)
    expected = [[tree_of_four(row, weight, bias)] for row in x.tolist()]
    assert min(value for (value,) in expected) < 0 < max(value for (value,) in expected)
    torch.testing.assert_close(net(x), torch.tensor(expected, dtype=torch.float64))


def test_every_class_neuron_reads_all_inputs_through_its_own_tree():
    net = randomize(MLNClassifier(4, 3, branching=2, output="probabilities", dtype=torch.float64))
    x = torch.randn(20, 4, dtype=torch.float64)
    # Level by level: four synapses and two dendrites of each neuron, then two edges and the root of each.
    weight, bias = net.layer.weight, net.layer.bias
    weights = torch.cat([weight[:12].reshape(3, 4), weight[12:].reshape(3, 2)], dim=1).tolist()
    biases = torch.cat([bias[:6].reshape(3, 2), bias[6:].reshape(3, 1)], dim=1).tolist()
    expected = [softmax([tree_of_four(row, weights[n], biases[n]) for n in range(3)]) for row in x.tolist()]
    torch.testing.assert_close(net(x), torch.tensor(expected, dtype=torch.float64))


# ------------------------------------------------------------------------------------------------------ the CNN


@pytest.mark.parametrize("training", [True, False])
def test_conv_mln_computes_the_appendix(training):
    net = randomize(ConvMLN(branching=16, output="logits")).train(training)
    x, state = torch.randn(6, 1, 32, 32), {key: value.clone() for key, value in net.state_dict().items()}
    z = x
    for first in (0, 4, 8):
        z = F.conv2d(z, state[f"cnn.{first}.weight"], state[f"cnn.{first}.bias"], padding=2)
        z = F.max_pool2d(z, 2, stride=2)
        mean = z.mean((0, 2, 3)) if training else state[f"cnn.{first + 2}.running_mean"]
        variance = z.var((0, 2, 3), unbiased=False) if training else state[f"cnn.{first + 2}.running_var"]
        z = (z - mean[:, None, None]) / torch.sqrt(variance[:, None, None] + 1e-5)
        z = z * state[f"cnn.{first + 2}.weight"][:, None, None] + state[f"cnn.{first + 2}.bias"][:, None, None]
        z = z.clamp(min=0)
    z = z.reshape(6, 256)
    weight, bias = state["head.layer.weight"], state["head.layer.bias"]
    roots = []
    for n in range(10):
        dendrites = [
            F.leaky_relu(z[:, 16 * i : 16 * i + 16] @ weight[256 * n + 16 * i :][:16] + bias[16 * n + i], 0.1)
            for i in range(16)
        ]
        total = sum(w * dendrite for w, dendrite in zip(weight[2560 + 16 * n :][:16], dendrites, strict=True))
        roots.append(F.leaky_relu(total + bias[160 + n], 0.1))
    torch.testing.assert_close(net(x), torch.stack(roots, -1), rtol=1e-3, atol=1e-3)


def synapse_gains(net, features):
    """What reaches each neuron of each feature: 0 where the synapse is silent. All weights are 1, no activation."""
    features = features.clone().requires_grad_()
    y = net.head(features)  # (batch, neurons), one pass: one draw of the dropout
    gains = [torch.autograd.grad(y[:, n].sum(), features, retain_graph=True)[0] for n in range(y.shape[-1])]
    return torch.stack(gains, dim=1)  # (batch, neurons, 256)


@pytest.fixture
def summing_net():
    """A ConvMLN whose neurons add up their features, so that gradients are the dropout factors."""
    net = ConvMLN(branching=16, dropout=0.25, activation=None, output="logits")
    with torch.no_grad():
        net.head.layer.weight.fill_(1.0)
    return net


def test_conv_mln_dropout_silences_single_synapses_on_the_features(summing_net):
    gains = synapse_gains(summing_net.train(), torch.rand(8, 256))
    kept = gains != 0
    # Kept synapses are scaled once, by 1 / (1 - p): a second dropout on the dendrites would show here.
    torch.testing.assert_close(gains[kept], torch.full_like(gains[kept], 4 / 3))
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.02)  # 20,480 synapses: 6 standard deviations
    assert kept.any(0).all()  # every one of the 256 features is read
    assert all((kept[0, n] != kept[0, 0]).any() for n in range(1, 10))  # each neuron drops its own
    assert all((kept[i, 0] != kept[0, 0]).any() for i in range(1, 8))  # each sample too


def test_conv_mln_drops_nothing_before_the_features_and_nothing_in_evaluation(summing_net):
    x = torch.randn(4, 1, 32, 32)
    summing_net.train()
    assert torch.equal(summing_net.cnn(x), summing_net.cnn(x))
    assert not torch.equal(summing_net(x), summing_net(x))
    assert (synapse_gains(summing_net.eval(), torch.rand(8, 256)) == 1).all()
