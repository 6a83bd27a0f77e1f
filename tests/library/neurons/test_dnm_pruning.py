"""DNM.prune and DNM.logic: what is removed, what stays, and that outputs do not change."""

import copy
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.neurons import DNM
from dendritree.neurons.dnm_pruning import STATES


def layer_of(weight, threshold, **options):
    """A layer with given w and q, shape (neurons, dendrites, inputs)."""
    weight = torch.tensor(weight, dtype=torch.float64)
    layer = DNM(weight.shape[2], weight.shape[0], dendrites=weight.shape[1], dtype=torch.float64, **options)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.threshold.copy_(torch.tensor(threshold, dtype=torch.float64))
    return layer


# ------------------------------------------------------------------------------------------------------------ states


@pytest.mark.parametrize(
    ("w", "q", "state"),
    [  # the six cases of Ji et al. (2016), over inputs from 0 to 1
        (1.0, 0.5, "direct"),
        (-1.0, -0.5, "inverse"),
        (1.0, 1.5, "constant 0"),
        (-1.0, 0.5, "constant 0"),
        (1.0, -0.5, "constant 1"),
        (-1.0, -1.5, "constant 1"),
    ],
)
def test_the_four_states_of_a_synapse(w, q, state):
    layer = layer_of([[[w]]], [[[q]]])
    assert STATES[layer.states().item()] == state
    assert layer.states().shape == layer.weight.shape


def test_states_depend_on_the_range_of_each_input():
    layer = layer_of([[[1.0, 1.0]]], [[[1.5, 1.5]]])
    assert [STATES[s] for s in layer.states(high=torch.tensor([1.0, 2.0])).flatten()] == ["constant 0", "direct"]


# ----------------------------------------------------------------------------------------------------------- pruning


@given(
    seed=st.integers(0, 10_000),
    inputs=st.integers(1, 6),
    neurons=st.integers(1, 3),
    dendrites=st.integers(1, 4),
    soma=st.sampled_from(["sigmoid", "logit", "log"]),
    tolerance=st.sampled_from([1e-6, 1e-3, 0.05, 0.5]),
    wide=st.sampled_from([0.3, 2.0, 6.0]),
)
def test_outputs_stay_within_the_tolerance_on_the_whole_range(seed, inputs, neurons, dendrites, soma, tolerance, wide):
    torch.manual_seed(seed)
    layer = DNM(inputs, neurons, dendrites=dendrites, soma=soma, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.normal_(0, wide)
        layer.threshold.normal_(0, wide)
    low = -torch.rand(inputs, dtype=torch.float64)
    high = torch.rand(inputs, dtype=torch.float64)
    small = layer.prune(low, high, tolerance=tolerance)
    corners = torch.cartesian_prod(*(torch.tensor([a, b]) for a, b in zip(low, high, strict=True))).reshape(-1, inputs)
    x = torch.cat([corners.double(), low + (high - low) * torch.rand(200, inputs, dtype=torch.float64)])
    assert (small(x) - layer(x)).abs().max() <= tolerance * (1 + 1e-9) + 1e-12
    assert small.weight.numel() <= layer.weight.numel()
    again = small.prune(low, high, tolerance=tolerance)
    assert (again(x) - layer(x)).abs().max() <= 2 * tolerance * (1 + 1e-9) + 1e-12
    assert again.weight.numel() <= small.weight.numel()


def test_a_huge_synapse_of_one_dendrite_hides_no_other():
    layer = layer_of([[[-1e17, 0], [2, 0]]], [[[0, -9], [1, -9]]], soma="logit")
    x = torch.tensor([[0.0, 0.5], [1.0, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(layer.prune(0, 1, tolerance=1e-3)(x), layer(x), rtol=0, atol=1e-3)


def test_constant_synapses_and_dead_dendrites_go_and_the_rest_stays():
    w = [[[9.0, 0.0, 1.0], [0.0, -9.0, 3.0]], [[0.0, 0.0, 0.0], [9.0, 0.0, -9.0]]]
    q = [[[4.0, -9.0, -9.0], [9.0, 5.0, 1.0]], [[9.0, 9.0, 9.0], [4.0, -9.0, -5.0]]]
    small = layer_of(w, q).prune()
    assert small.is_pruned
    assert small.source.tolist() == [0, 0, 2]
    assert small.dendrite.tolist() == [0, 1, 1]
    assert small.neuron.tolist() == [0, 1]
    assert small.weight.tolist() == [9.0, 9.0, -9.0]
    assert small.log_scale.abs().max() < 1e-4
    assert sum(p.numel() for p in small.parameters()) == 6
    assert small.multiply_adds == 2 * 3 + 2
    assert "pruned to 3 of 12 synapses, 2 of 4 dendrites" in repr(small)


def test_a_synapse_that_is_constant_but_neither_0_nor_1_becomes_a_factor():
    layer = layer_of([[[0.0, 8.0]]], [[[-0.1, 4.0]]], soma="logit")
    small = layer.prune()
    assert small.source.tolist() == [1]
    assert small.log_scale.exp().item() == pytest.approx(1 / (1 + math.exp(-0.5)))
    x = torch.rand(50, 2, dtype=torch.float64)
    torch.testing.assert_close(small(x), layer(x))


@pytest.mark.parametrize("soma", ["sigmoid", "logit"])
def test_a_neuron_that_never_does_anything_loses_all_its_dendrites(soma):
    layer = layer_of([[[1.0]], [[5.0]]], [[[9.0]], [[2.0]]], soma=soma)
    small = layer.prune()
    assert small.neuron.tolist() == [1]
    torch.testing.assert_close(small(torch.zeros(3, 1).double()), layer(torch.zeros(3, 1).double()))


def test_a_pruned_layer_trains_and_its_gradients_are_right():
    torch.manual_seed(0)
    for soma in ("sigmoid", "logit", "log"):
        layer = DNM(4, 2, dendrites=3, soma=soma, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.normal_(0, 3)
            layer.threshold.normal_(0, 1)
        small = layer.prune(tolerance=0.3)
        assert 0 < small.weight.numel() < layer.weight.numel()

        def function(x, weight, threshold, small=small):
            return torch.func.functional_call(small, {"weight": weight, "threshold": threshold}, x)

        x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(function, (x, small.weight, small.threshold))
        small.reset_parameters()
        assert small(x).isfinite().all()


def test_a_pruned_layer_fills_one_without_memory():
    torch.manual_seed(0)
    layer = layer_of(torch.randn(3, 4, 5).tolist(), torch.randn(3, 4, 5).tolist()).prune(tolerance=0.1)
    x = torch.rand(6, 5, dtype=torch.float64)
    meta = DNM(5, 3, dendrites=4, device="meta", dtype=torch.float64)
    empty = copy.deepcopy(meta).to_empty(device="cpu")
    meta.load_state_dict(layer.state_dict(), assign=True)
    empty.load_state_dict(layer.state_dict())
    assert layer.is_pruned
    assert torch.equal(meta(x), layer(x))
    assert torch.equal(empty(x), layer(x))


def test_a_pruned_layer_saves_and_loads_into_a_whole_one(tmp_path):
    torch.manual_seed(1)
    layer = DNM(6, 2, dendrites=3)
    with torch.no_grad():
        layer.weight.normal_(0, 4)
    small, x = layer.prune(tolerance=0.02).eval(), torch.rand(5, 6)
    assert small.weight.numel() < layer.weight.numel()
    assert not small.training
    torch.save(small.state_dict(), tmp_path / "small.pt")
    state = torch.load(tmp_path / "small.pt", weights_only=True)
    whole = DNM(6, 2, dendrites=3)
    whole.load_state_dict(state)
    assert repr(whole) == repr(small)
    for twin in (whole, copy.deepcopy(small)):
        assert torch.equal(twin(x), small(x))
    assert small.double()(x.double()).dtype == torch.float64
    assert small.source.dtype == torch.int64


def break_state(state, key, value):
    return {**state, key: value} if value is not None else {k: v for k, v in state.items() if k != key}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("dendrite", None, "must hold weight, threshold, source, dendrite, neuron, log_scale: dendrite missing"),
        ("source", torch.tensor([0, 7]), "source of a pruned DNM must be from 0 to 1: got 0 to 7"),
        ("source", torch.tensor([0.0, 1.0]), "source of a pruned DNM must be integers: got torch.float32"),
        ("dendrite", torch.tensor([0, -1]), "dendrite of a pruned DNM must be from 0 to 1: got -1 to 0"),
        ("neuron", torch.tensor([1, 0]), "neuron of a pruned DNM must be sorted, each at most 1 times"),
        ("neuron", torch.tensor([0, 0]), "neuron of a pruned DNM must be sorted, each at most 1 times"),
        ("weight", torch.ones(3), "weight of a pruned DNM must have shape .2,.: got .3,."),
        ("log_scale", torch.tensor([0, 0]), "log_scale of a pruned DNM must be floats: got torch.int64"),
    ],
)
def test_a_state_that_is_no_pruned_layer_is_refused_and_changes_nothing(key, value, message):
    state = {
        "weight": torch.ones(2),
        "threshold": torch.ones(2),
        "source": torch.tensor([0, 1]),
        "dendrite": torch.tensor([0, 1]),
        "neuron": torch.tensor([0, 1]),
        "log_scale": torch.zeros(2),
    }
    layer = DNM(2, 2, dendrites=1)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(RuntimeError, match=message):
        layer.load_state_dict(break_state(state, key, value))
    assert layer.state_dict().keys() == before.keys()
    assert all(torch.equal(layer.state_dict()[k], before[k]) for k in before)
    layer.load_state_dict(state)
    assert layer.is_pruned


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance must be a positive number: got 0"),
        ({"tolerance": math.nan}, "tolerance must be a positive number: got nan"),
        ({"low": 2.0}, "low and high must be finite, low at most high: got 2.0 and 1.0"),
        ({"high": math.inf}, "low and high must be finite, low at most high: got 0.0 and inf"),
        ({"low": "0"}, "low must be a number or one for each input: got '0'"),
        ({"high": torch.ones(3)}, "high must be a number or one for each of 2 inputs: got tensor"),
    ],
)
def test_a_bad_range_or_tolerance_is_refused(options, message):
    with pytest.raises(DendritreeError, match=message):
        DNM(2, 1, dendrites=1).prune(**options)


# ------------------------------------------------------------------------------------------------------------- logic

A, NOT_A, NO, YES = (9.0, 4.5), (-9.0, -4.5), (0.0, 9.0), (0.0, -9.0)


@pytest.mark.parametrize(
    ("dendrites", "threshold", "text"),
    [
        ([[A, NOT_A], [NOT_A, A]], 0.5, "(x0 > 0.5 and x1 < 0.5) or (x0 < 0.5 and x1 > 0.5)"),
        ([[A, YES], [YES, A]], 0.5, "x0 > 0.5 or x1 > 0.5"),
        ([[A, YES], [YES, A]], 1.5, "x0 > 0.5 and x1 > 0.5"),
        ([[A, A], [NO, A]], 0.5, "x0 > 0.5 and x1 > 0.5"),
        ([[A, NO], [NO, A]], 0.5, "never"),
        ([[A, YES], [YES, YES]], 0.5, "always"),
        ([[A, YES], [YES, YES]], 1.5, "x0 > 0.5"),
        ([[A, YES], [A, YES]], 0.5, "x0 > 0.5"),
        ([[A, YES], [A, A], [NOT_A, A]], 0.5, "x0 > 0.5 or (x0 < 0.5 and x1 > 0.5)"),
        ([[A, YES], [YES, A]], -0.5, "always"),
        ([[A, YES], [YES, A]], 2.5, "never"),
        ([[A, YES], [YES, A], [NOT_A, NOT_A]], 1.5, "at least 2 of: x0 > 0.5, x1 > 0.5, x0 < 0.5 and x1 < 0.5"),
    ],
)
def test_the_logic_as_text_and_as_a_function(dendrites, threshold, text):
    pairs = torch.tensor([dendrites]).double()
    layer = layer_of(pairs[..., 0].tolist(), pairs[..., 1].tolist(), soma_threshold=threshold)
    assert str(layer.logic()) == f"neuron 0 = {text}"
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).double()
    assert torch.equal(layer.logic()(x), layer(x) > 0.5)
    assert str(layer.prune().logic()) == str(layer.logic()) or not re.search("or|and", text)


def test_factors_of_pruned_dendrites_are_shown_where_they_matter():
    layer = layer_of([[[9.0, 0.0], [9.0, 0.0], [-9.0, 0.0]]], [[[4.5, 0.0], [2.7, 0.1], [-4.5, -9.0]]])
    small = layer.prune()
    assert str(small.logic()) == "neuron 0 = 0.5 x0 > 0.5 + 0.378 x0 > 0.3 + 1 x0 < 0.5 > 0.5"
    x = torch.tensor([[0.0, 0.0], [0.4, 0.0], [1.0, 0.0]]).double()
    assert torch.equal(small.logic()(x), layer(x) > 0.5)


def test_names_and_ranges():
    layer = layer_of([[[1.0, 1.0]]], [[[20.0, 0.5]]])
    assert str(layer.logic(["age", "dose"], high=torch.tensor([90.0, 1.0]))) == "neuron 0 = age > 20 and dose > 0.5"
    for names in (["age"], "ab", [1, 2]):
        with pytest.raises(OptionError, match="names must be one string for each of 2 inputs: got"):
            layer.logic(names)
    with pytest.raises(ShapeError, match="last dimension of the input must be 2: got"):
        layer.logic()(torch.zeros(3))


def test_xor_among_useless_inputs_is_learned_pruned_and_read():
    torch.manual_seed(0)
    x = torch.randint(2, (256, 6)).float()
    y = (x[:, 1] != x[:, 4]).float()[:, None]
    layer = DNM(6, 1, dendrites=8, soma="log")
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(layer(x), y).backward()
        optimizer.step()
    assert ((layer(x) > 0) == (y > 0.5)).all()
    small = layer.prune(tolerance=1.0)  # of logits of about 10
    assert small.weight.numel() < layer.weight.numel() // 2
    assert ((small(x) > 0) == (y > 0.5)).all()
    assert (small.logic()(x) == (y > 0.5)).all()
    assert set(re.findall(r"x\d", str(small.logic()))) == {"x1", "x4"}
