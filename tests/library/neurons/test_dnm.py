"""DNM: the source's equations loop by loop, the log domain, the contract of nn.Linear."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from dendritree import count
from dendritree.errors import OptionError
from dendritree.neurons import DNM
from dendritree.ops.neurons import log_products

XOR = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0], [1.0], [1.0], [0.0]])


def sigmoid(u):
    return 1 / (1 + math.exp(-u)) if u > 0 else math.exp(u) / (1 + math.exp(u))


def loop_by_loop(layer, x):
    """The equations of Todo et al. (2014), one number at a time."""
    k, k_s, theta = layer.k, layer.soma_k, layer.soma_threshold
    w, q = layer.weight.tolist(), layer.threshold.tolist()
    outputs = []
    for sample in x.reshape(-1, layer.in_features).tolist():
        for n in range(layer.out_features):
            v = 0.0
            for j in range(layer.dendrites):
                z = 1.0
                for i in range(layer.in_features):
                    z *= sigmoid(k * (w[n][j][i] * sample[i] - q[n][j][i]))
                v += z
            logit = k_s * (v - theta)
            outputs.append({"sigmoid": sigmoid(logit), "logit": logit, "log": k_s * math.log(v / theta)}[layer.soma])
    return torch.tensor(outputs, dtype=torch.float64).reshape(*x.shape[:-1], layer.out_features)


@given(
    inputs=st.integers(1, 9),
    neurons=st.integers(1, 3),
    dendrites=st.integers(1, 4),
    leading=st.lists(st.integers(0, 3), max_size=3),
    soma=st.sampled_from(["sigmoid", "logit", "log"]),
    k=st.sampled_from([1.0, 5.0, 20.0]),
    chunk=st.sampled_from([1, 30, 1 << 18]),
)
def test_it_computes_the_equations(inputs, neurons, dendrites, leading, soma, k, chunk):
    layer = DNM(inputs, neurons, dendrites=dendrites, k=k, soma_k=3, soma_threshold=0.3, soma=soma, dtype=torch.float64)
    x = 2 * torch.randn(*leading, inputs, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_products, "CHUNK", chunk)
        y = layer(x)
    assert y.shape == (*leading, neurons)
    torch.testing.assert_close(y, loop_by_loop(layer, x))


@pytest.mark.parametrize("soma", ["sigmoid", "logit", "log"])
@pytest.mark.parametrize("chunk", [10, 1 << 18])
def test_gradients_and_second_gradients_are_those_of_the_function(soma, chunk, monkeypatch):
    monkeypatch.setattr(log_products, "CHUNK", chunk)
    torch.manual_seed(0)
    layer = DNM(3, 2, dendrites=2, soma=soma, dtype=torch.float64)
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)

    def function(x, weight, threshold):
        return torch.func.functional_call(layer, {"weight": weight, "threshold": threshold}, x)

    inputs = (x, layer.weight, layer.threshold)
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


# ---------------------------------------------------------------------------------------------------- many inputs


@pytest.mark.parametrize("inputs", [784, 1024, 4096])
@pytest.mark.parametrize("soma", ["sigmoid", "logit", "log"])
def test_many_inputs_start_with_gradients_that_reach_every_synapse(inputs, soma):
    torch.manual_seed(0)
    layer = DNM(inputs, 2, dendrites=2, soma=soma)
    x = torch.rand(8, inputs)
    layer(x).sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
        assert (parameter.grad != 0).all()


def test_a_product_far_below_the_smallest_float_is_exact_in_the_log_domain():
    layer = DNM(1024, 1, dendrites=1, k=1.0, soma="log", soma_k=1.0, soma_threshold=1.0)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.threshold.fill_(3.0)
    x = torch.zeros(1, 1024, requires_grad=True)
    log_v = layer(x)  # 1024 log sigmoid(-3): V is about exp(-3121), the smallest float exp(-103)
    assert log_v.item() == pytest.approx(1024 * math.log(sigmoid(-3.0)), rel=1e-6)
    log_v.backward()
    slope = 1 - sigmoid(-3.0)
    torch.testing.assert_close(x.grad, torch.full_like(x, slope))
    torch.testing.assert_close(layer.threshold.grad, torch.full_like(layer.threshold, -slope))


def test_synapses_as_far_as_floats_go_stay_finite():
    layer = DNM(3, 1, dendrites=1, soma="log")
    x = torch.tensor([[1e30, -1e30, 0.0], [-1e30, 1e30, 1e30]], requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad.isfinite().all()
    assert x.grad.isfinite().all()


def test_nothing_of_samples_by_dendrites_by_inputs_is_kept():
    layer, x = DNM(300, 5, dendrites=4), torch.rand(200, 300)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
        layer(x)
    assert max(sizes) <= x.numel()  # the input itself; all synapses would be 1.2 million


# --------------------------------------------------------------------------------------------------------- learning


def train_on_xor(seed, dendrites=8, steps=200):
    torch.manual_seed(seed)
    layer, (x, y) = DNM(2, 1, dendrites=dendrites, soma="log"), XOR
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(layer(x), y).backward()
        optimizer.step()
    return layer, bool(((layer(x) > 0) == (y > 0.5)).all())


def test_one_neuron_learns_xor():
    assert sum(train_on_xor(seed)[1] for seed in range(5)) >= 4


# ----------------------------------------------------------------------------------------- contract of nn.Linear


def test_it_says_what_it_is_and_counts_what_it_does():
    layer = DNM(6, 3, dendrites=2, k=4, soma_k=3, soma_threshold=1.5, soma="logit")
    assert repr(layer) == "DNM(6, 3, dendrites=2, k=4.0, soma_k=3.0, soma_threshold=1.5, soma='logit')"
    synapses = 6 * 3 * 2
    assert layer.multiply_adds == 2 * synapses + 3 * 2
    assert (count(layer).total, count(layer).multiply_adds) == (2 * synapses, layer.multiply_adds)


def test_the_first_weights_follow_their_law_and_torchs_seed():
    layers = []
    for _ in range(2):
        torch.manual_seed(3)
        layers.append(DNM(128, 4, dendrites=5))
    assert torch.equal(layers[0].weight, layers[1].weight)
    reach = (8 / 128) ** 0.5
    weight, threshold = layers[0].weight.detach(), layers[0].threshold.detach() + math.log(128) / 5
    assert 0.95 * reach < weight.abs().max() <= reach
    assert 0.45 * reach < threshold.abs().max() <= 0.5 * reach + 1e-6


@pytest.mark.parametrize(
    "options",
    [
        {"dendrites": 0},
        {"k": 0},
        {"soma_threshold": math.inf},
        {"soma_threshold": 0.0, "soma": "log"},
        {"soma": "sigmod"},
    ],
    ids=str,
)
def test_invalid_options_are_rejected(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        DNM(**{"in_features": 4, "out_features": 1, "dendrites": 2, **options})
