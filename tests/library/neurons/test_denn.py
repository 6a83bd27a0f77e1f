"""DENN against its equation, one Python step per input."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import budget
from dendritree.errors import DendritreeError
from dendritree.neurons import DENN


@st.composite
def layers(draw):
    inputs = draw(st.integers(1, 12))
    options = {"branches": draw(st.integers(1, inputs)), "bias": draw(st.booleans())}
    layer = DENN(inputs, draw(st.integers(1, 4)), **options, dtype=torch.float64)
    if layer.bias is not None:
        nn.init.normal_(layer.bias)
    return layer


def by_hand(layer, x):
    """One sample: each neuron's largest branch, from the wiring and the weights."""
    outputs = []
    for n in range(layer.out_features):
        sums, s = [], 0
        for branch, size in enumerate(layer.branch_sizes):
            total = 0.0 if layer.bias is None else layer.bias[n, branch].item()
            for _ in range(size):
                total += layer.weight[n, s].item() * x[int(layer.inputs[n, s])].item()
                s += 1
            sums.append(total)
        outputs.append(max(sums))
    return torch.tensor(outputs, dtype=torch.float64)


@given(layers(), st.sampled_from([(3,), (), (2, 3), (0,), (2, 0)]))
def test_outputs_are_those_of_the_equation(layer, leading):
    x = torch.randn(*leading, layer.in_features, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (*leading, layer.out_features)
    for sample, output in zip(x.reshape(-1, layer.in_features), y.reshape(-1, layer.out_features), strict=True):
        torch.testing.assert_close(output, by_hand(layer, sample))


@given(layers())
def test_branches_split_all_inputs_as_equally_as_possible(layer):
    sizes = layer.branch_sizes
    assert len(sizes) == layer.branches
    assert sum(sizes) == layer.in_features
    assert max(sizes) - min(sizes) <= 1
    assert (torch.tensor(layer.inputs).sort(1)[0] == torch.arange(layer.in_features)).all()
    assert budget.count(layer).multiply_adds == layer.weight.numel() == layer.in_features * layer.out_features
    assert layer.bias is None or layer.bias.shape == (layer.out_features, layer.branches)


@pytest.mark.parametrize(("branches", "bias"), [(1, True), (3, True), (4, False), (7, True)])
def test_gradients_are_those_of_finite_differences(branches, bias):
    torch.manual_seed(0)
    layer = DENN(7, 3, branches=branches, bias=bias, dtype=torch.float64)
    x = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
    parameters = tuple(layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *parameters))


def test_one_branch_is_a_linear_layer():
    layer, linear = DENN(6, 3, branches=1), nn.Linear(6, 3)
    with torch.no_grad():
        linear.weight.scatter_(1, torch.tensor(layer.inputs).long(), layer.weight)
        linear.bias.copy_(layer.bias.normal_().flatten())
    x = torch.randn(5, 6)
    torch.testing.assert_close(layer(x), linear(x))


def test_every_neuron_splits_in_its_own_way_and_a_seed_fixes_it():
    layer = DENN(50, 3, branches=5, seed=7)
    first = [set(row[:10].tolist()) for row in layer.inputs]
    assert first[0] != first[1] != first[2] != first[0]
    assert (DENN(50, 3, branches=5, seed=7).inputs == layer.inputs).all()
    assert (DENN(50, 3, branches=5, seed=8).inputs != layer.inputs).any()
    torch.manual_seed(3)
    drawn = DENN(50, 3).inputs
    assert (DENN(50, 3).inputs != drawn).any()
    torch.manual_seed(3)
    assert (DENN(50, 3).inputs == drawn).all()


def test_initial_law():
    torch.manual_seed(0)
    layer = DENN(50, 2000, branches=3)
    for part, size in zip(layer.weight.split(layer.branch_sizes, 1), (17, 17, 16), strict=True):
        assert part.std().item() == pytest.approx(size**-0.5, rel=0.02)
    assert not layer.bias.any()
    wiring, weight = layer.inputs.copy(), layer.weight.detach().clone()
    layer.reset_parameters()
    assert (layer.inputs == wiring).all()
    assert not torch.equal(layer.weight, weight)


# -------------------------------------------------------------------------------------------------- state and types


@pytest.mark.parametrize("backend", ["fused", "eager", "reference"])
def test_backends_agree(backend):
    layer, other = DENN(7, 3, branches=3), DENN(7, 3, branches=3, backend=backend)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(5, 7)
    torch.testing.assert_close(other(x), layer(x))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _: None, "Missing key"),
        (lambda inputs: inputs.float(), "integers"),
        (lambda inputs: inputs[:1], r"got shape \(1, 6"),
        (lambda inputs: inputs + 1, "each of 6 inputs once"),
        (lambda inputs: inputs[:, [0, 0, 2, 3, 4, 5]], "each of 6 inputs once"),
    ],
)
def test_an_impossible_wiring_is_rejected(spoil, message):
    net, state = nn.Sequential(DENN(6, 2, branches=2)), DENN(6, 2, branches=2).state_dict()
    state["inputs"] = spoil(state["inputs"])
    before = net[0].weight.detach().clone()
    with pytest.raises(RuntimeError, match=message):
        net.load_state_dict({f"0.{key}": value for key, value in state.items() if value is not None})
    assert state["inputs"] is None or torch.equal(net[0].weight, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"branches": 0}, "branches"),
        ({"branches": 9}, "at most in_features 8"),
        ({"seed": -1}, "seed"),
        ({"backend": "fast"}, "backend"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DENN(**{"in_features": 8, "out_features": 3, **options})
