"""DMNN: the source's equations loop by loop, the contract of nn.Linear."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from dendritree import count
from dendritree.errors import DendritreeError
from dendritree.neurons import DMNN
from dendritree.ops.neurons import log_products

XOR = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1, 1, 0])


def smooth_min(values, temperature):
    return -temperature * math.log(sum(math.exp(-value / temperature) for value in values))


def loop_by_loop(layer, x):
    """The equations of Ritter et al. (2003), one number at a time: w^1 = -low is excitatory, w^0 = -high inhibitory."""
    minimum = min if layer.temperature is None else lambda values: smooth_min(values, layer.temperature)
    excitatory, inhibitory, p = (-layer.low).tolist(), (-layer.high).tolist(), layer.sign.tolist()
    outputs = []
    for sample in x.reshape(-1, layer.in_features).tolist():
        for n in range(layer.out_features):
            responses = []
            for k in range(layer.dendrites):
                terms = []
                for i in range(layer.in_features):
                    for l, w in ((1, excitatory[n][k][i]), (0, inhibitory[n][k][i])):  # noqa: E741  as in the source
                        terms.append((-1) ** (1 - l) * (sample[i] + w))
                responses.append(p[k] * minimum(terms))
            joined = minimum(responses) if layer.reduce == "min" else -minimum([-r for r in responses])
            outputs.append(layer.scale * joined)
    return torch.tensor(outputs, dtype=torch.float64).reshape(*x.shape[:-1], layer.out_features)


@given(
    inputs=st.integers(1, 7),
    neurons=st.integers(1, 3),
    dendrites=st.integers(1, 4),
    leading=st.lists(st.integers(0, 3), max_size=3),
    reduce=st.sampled_from(["max", "min"]),
    temperature=st.sampled_from([None, 0.05, 1.0]),
    mixed=st.booleans(),
    chunk=st.sampled_from([1, 30, 1 << 18]),
)
def test_it_computes_the_equations(inputs, neurons, dendrites, leading, reduce, temperature, mixed, chunk):
    signs = [(-1) ** k for k in range(dendrites)] if mixed else None
    layer = DMNN(
        inputs,
        neurons,
        dendrites=dendrites,
        reduce=reduce,
        temperature=temperature,
        signs=signs,
        scale=3.0,
        dtype=torch.float64,
    )
    x = 2 * torch.randn(*leading, inputs, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_products, "CHUNK", chunk)
        y = layer(x)
    assert y.shape == (*leading, neurons)
    torch.testing.assert_close(y, loop_by_loop(layer, x))


@pytest.mark.parametrize("temperature", [None, 0.3])
@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("chunk", [10, 1 << 18])
def test_gradients_are_those_of_the_function(temperature, reduce, chunk, monkeypatch):
    monkeypatch.setattr(log_products, "CHUNK", chunk)
    torch.manual_seed(0)
    layer = DMNN(3, 2, dendrites=3, reduce=reduce, temperature=temperature, signs=[1, -1, 1], dtype=torch.float64)
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)

    def function(x, low, high):
        return torch.func.functional_call(layer, {"low": low, "high": high}, x)

    assert torch.autograd.gradcheck(function, (x, layer.low, layer.high))
    assert torch.autograd.gradgradcheck(function, (x, layer.low, layer.high))


def test_a_smooth_depth_is_below_the_hard_one_by_at_most_t_log_2n():
    hard, x = DMNN(50, 1, dendrites=1), torch.rand(20, 50)
    smooth = DMNN(50, 1, dendrites=1, temperature=0.01)
    smooth.load_state_dict(hard.state_dict())
    gap = hard(x) - smooth(x)
    assert (gap >= -1e-6).all()
    assert (gap <= 0.01 * math.log(100) + 1e-6).all()


# --------------------------------------------------------------------------------------------------------- learning


def train_on_xor(seed):
    torch.manual_seed(seed)
    layer, (x, y) = DMNN(2, 1, dendrites=2, temperature=0.1, scale=10), XOR
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(layer(x).flatten(), y.float()).backward()
        optimizer.step()
    return bool(((layer(x).flatten() > 0) == (y == 1)).all())


def test_one_neuron_with_two_boxes_learns_xor_by_gradient():
    assert all(train_on_xor(seed) for seed in range(5))


# ----------------------------------------------------------------------------------------- contract of nn.Linear


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("dendrites", "reduce"), [(1, "max"), (3, "max"), (3, "min")])
def test_smooth_gradients_are_shares_of_one(dtype, dendrites, reduce):
    torch.manual_seed(0)
    layer = DMNN(8, 1, dendrites=dendrites, reduce=reduce, temperature=0.01, dtype=dtype)
    with torch.no_grad():
        layer.low[:, 1:], layer.high[:, 1:] = layer.low[:, :1], layer.high[:, :1]  # equal boxes have equal shares
    for scale in (1.0, 3.0, 1e4 if dtype == torch.float32 else 30.0):
        x = (torch.randn(4, 8) * scale).to(dtype).requires_grad_()
        layer.zero_grad()
        layer(x)[0].sum().backward()
        faces = torch.cat([layer.low.grad, layer.high.grad], -1)[0].abs().sum(-1)
        torch.testing.assert_close(faces.double(), torch.full_like(faces, 1 / dendrites).double(), rtol=0.02, atol=0)


def test_the_first_boxes_lie_around_the_middle_of_the_inputs_range():
    layer = DMNN(50, 20, dendrites=2, input_range=(-1.0, 3.0))
    assert -3 <= layer.low.min() < -2.9
    assert 0.9 < layer.low.max() < 1
    assert 1 <= layer.high.min() < 1.1
    assert 4.9 < layer.high.max() < 5
    assert (layer.low < layer.high).all()
    assert "input_range=(-1.0, 3.0)" in repr(layer)


@pytest.mark.parametrize(
    "options",
    [
        {"dendrites": 2.0},
        {"reduce": "mix"},
        {"temperature": 0},
        {"input_range": (1.0, 1.0)},
        {"signs": 0},
        {"signs": [1]},
    ],
    ids=str,
)
def test_invalid_options_are_rejected(options):
    with pytest.raises(DendritreeError, match=next(iter(options))):
        DMNN(**{"in_features": 4, "out_features": 1, "dendrites": 2, **options})


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_it_says_what_it_is_and_counts_what_it_does(temperature):
    layer = DMNN(6, 3, dendrites=2, temperature=temperature, signs=[1, -1], scale=10)
    smooth = "" if temperature is None else ", temperature=0.5"
    assert repr(layer) == f"DMNN(6, 3, dendrites=2, reduce='max'{smooth}, signs=[1, -1], scale=10.0)"
    faces = 6 * 3 * 2 * 2
    assert (count(layer).total, count(layer).multiply_adds) == (faces, faces * (1 if temperature is None else 2))
