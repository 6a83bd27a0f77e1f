"""Dropout of the op: each synapse of each sample on its own, kept synapses scaled up, seeded by torch.

In `readers` every neuron is one synapse with weight 1 and no activation, so that the outputs for an input of ones
are the dropout factors themselves.
"""

import math

import pytest
import torch
from forests import ACTIVATIONS, NAMED, random_case, run, share
from torch import nn

from dendritree import DendriticLayer, ops
from dendritree.ops import dendritic, make_plan
from dendritree.randomness import own_draws
from dendritree.tree import Forest

backends = pytest.mark.parametrize("backend", ops.BACKENDS)
rates = pytest.mark.parametrize("p", [0.1, 0.4, 0.6, 0.9])
SAMPLES, NEURONS = 2000, 50


def factors(p, backend="auto", seed=0, samples=SAMPLES, neurons=NEURONS):
    """Dropout factors, shape (samples, neurons), of neurons that all read the same one input."""
    readers = share(Forest.grow(2, fan_in=1, neurons=neurons, ragged=True))
    torch.manual_seed(seed)
    x, weight = torch.ones(samples, 1), torch.ones(neurons)
    return dendritic(x, weight, None, make_plan(readers), ACTIVATIONS["none"], dropout=p, backend=backend)


def near(actual, expected, draws, p):
    """Within five standard deviations of the mean of `draws` independent draws."""
    return abs(actual - expected) < 5 * math.sqrt(p * (1 - p) / draws)


@backends
@rates
def test_a_synapse_is_silent_with_probability_p_and_scaled_up_otherwise(p, backend):
    actual = factors(p, backend)
    silent = actual == 0
    torch.testing.assert_close(actual[~silent], torch.full_like(actual[~silent], 65536 / (65536 - round(p * 65536))))
    assert near(silent.double().mean().item(), p, actual.numel(), p)


@backends
@pytest.mark.parametrize("name", NAMED)
def test_only_synapses_are_dropped_never_dendrites_or_biases(name, backend):
    forest, p = NAMED[name], 0.75
    torch.manual_seed(0)
    plan, ones = make_plan(forest), torch.ones(forest.edges, dtype=torch.float64)
    x, bias = torch.ones(200, forest.in_features, dtype=torch.float64), torch.ones(forest.nodes, dtype=torch.float64)
    actual = dendritic(x, ones, bias, plan, ACTIVATIONS["none"], dropout=p, backend=backend)
    nodes = torch.bincount(torch.as_tensor(forest.neuron_of_node.copy()), minlength=forest.neurons)
    kept = (actual - nodes) * (1 - p)  # all biases arrive; each kept synapse adds 1 / (1 - p) = 4
    torch.testing.assert_close(kept, kept.round())
    fan_in = torch.as_tensor(forest.fan_in_of_neuron.copy()).double()
    assert (kept >= 0).all()
    assert (kept <= fan_in).all()
    assert ((kept.mean(0) - (1 - p) * fan_in).abs() < 5 * (p * (1 - p) * fan_in / 200).sqrt()).all()


@backends
@pytest.mark.parametrize("name", ["balanced, shared", "unequal"])
def test_the_gradient_of_x_passes_the_kept_synapses_only(name, backend):
    forest = NAMED[name]
    plan = make_plan(forest)
    torch.manual_seed(0)
    x = torch.ones(100, forest.in_features, dtype=torch.float64, requires_grad=True)
    weight = torch.ones(forest.edges, dtype=torch.float64)
    dendritic(x, weight, None, plan, ACTIVATIONS["none"], dropout=0.5, backend=backend).sum().backward()
    readers = torch.bincount(torch.as_tensor(forest.synapse_inputs.copy()), minlength=forest.in_features)
    kept = x.grad / 2  # with all weights 1, the number of kept synapses that read an input
    torch.testing.assert_close(kept, kept.round())
    assert (kept <= readers).all()
    assert 0 < kept.sum() < 100 * readers.sum()


# ---------------------------------------------------------------------------------------------------------- seeding


@backends
def test_torch_manual_seed_decides(backend):
    assert torch.equal(factors(0.4, backend, seed=3), factors(0.4, backend, seed=3))
    assert not torch.equal(factors(0.4, backend, seed=3), factors(0.4, backend, seed=4))


# ----------------------------------------------------------------------------------------------------------- shapes


@backends
@pytest.mark.parametrize("leading", [(0,), (2, 0), (), (1,), (2, 3)])
@pytest.mark.parametrize("name", ["balanced, shared", "unequal"])
def test_dropout_takes_any_leading_dimensions(name, leading, backend):
    forest = NAMED[name]
    case, plan = random_case(forest, leading), make_plan(forest)
    actual = run(lambda *t: dendritic(*t, plan, torch.tanh, dropout=0.5, backend=backend), case)
    assert actual["output"].shape == (*leading, forest.neurons)
    assert all(tensor.isfinite().all() for tensor in actual.values())


@backends
@pytest.mark.parametrize("p", [0.99999, 0.999999])
def test_the_mean_stays_however_few_synapses_are_kept(p, backend):
    """One of 65536 is the least that can be kept: it is scaled up by as much, not by 1 / (1 - p)."""
    torch.manual_seed(0)
    forest = Forest.grow(64, depth=1, neurons=64)
    x, weight = torch.ones(400, forest.in_features), torch.ones(forest.edges)
    y = dendritic(x, weight, None, make_plan(forest), nn.Identity(), dropout=p, backend=backend)
    values = set(y.unique().tolist())
    assert 65536.0 in values
    assert all(value % 65536 == 0 for value in values)


@pytest.mark.parametrize("backend", ["fused", "eager"])  # masked matrices multiply infinity with 0 themselves
def test_a_silent_synapse_passes_nothing_on_whatever_it_reads(backend):
    forest = Forest.grow(4, depth=2, neurons=2)
    x = torch.full((50, forest.in_features), float("inf"), requires_grad=True)
    weight = torch.ones(forest.edges, requires_grad=True)
    torch.manual_seed(1)
    y = dendritic(x, weight, None, make_plan(forest), nn.ReLU(), dropout=0.9, backend=backend)
    assert not y.isnan().any()
    assert (y == 0).any()
    y[y == 0].sum().backward()
    assert not x.grad.isnan().any()


def test_within_own_draws_the_mask_is_that_of_the_seed_and_torchs_generator_stays():
    layer, x = DendriticLayer(16, 4, branching=4, dropout=0.5), torch.ones(8, 16)
    torch.manual_seed(3)
    expected, state = layer(x), torch.get_rng_state()
    with own_draws(3):
        assert layer(x).equal(expected)
    assert torch.get_rng_state().equal(state)
