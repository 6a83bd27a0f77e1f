"""Dropout masks: the fused kernels and PyTorch make the very same one, and it behaves like independent coin tosses.

`mask_of` asks PyTorch's function. The kernels store no mask, so it is read off what they compute: with inputs of one,
weights 1, 2, 4, ... and no activation an output spells out, bit by bit, which synapses were kept; and with weights of
one the gradient of an input that one synapse reads is that synapse's factor.
"""

import functools
import math

import numpy as np
import pytest
import torch
from forests import NAMED, random_case, rank_in_neuron
from torch import nn

import dendritree
from dendritree.ops import BACKENDS, dendritic, fused, make_plan
from dendritree.ops.dropout import draw_seed, synapse_scale
from dendritree.tree import Forest

SEEDS = [0, 1, -1, 2**31, 2**32, 12345678901234567, -(2**63), 2**63 - 1]
RATES = [0.1, 0.25, 0.5, 0.9]
FORESTS = {
    **NAMED,
    "odd fan-in": Forest.grow(13, depth=1, neurons=5),
    "odd fan-ins, two levels": Forest.grow([5, 3], neurons=3),
    "odd and even nodes": Forest.join([Forest.nested([n, [n + 1], [[n], 1]]) for n in (1, 2, 3, 5)]),
}


def mask_of(forest, seed, samples, p, dtype=torch.float64):
    """The factors (samples, synapses) that PyTorch's function gives."""
    return synapse_scale(torch.tensor([seed]), samples, make_plan(forest).pairs, p, dtype)


def own_inputs(forest):
    """The same trees, every synapse reading an input of its own: synapse k the input k."""
    return forest.wired(np.arange(forest.synapses), forest.synapses)


def kernel_outputs(forest, weight, seed, samples, p, dtype):
    """Outputs of the fused op for inputs of one, and the gradient of those inputs for cotangents of one."""
    x = torch.ones(samples, forest.in_features, dtype=dtype, requires_grad=True)
    y = fused.dendritic(x, weight, None, make_plan(forest), nn.Identity(), True, p, torch.tensor([seed]))
    y.sum().backward()
    return y.detach(), x.grad


def factor(p):
    """Synapses are silent in so many of 65536 cases; the others make up for them exactly."""
    return 65536 / (65536 - min(round(p * 65536), 65535))


def kept_in_forward(forest, seed, samples, p, dtype=torch.float64):
    """Which synapses the forward kernel keeps, read off its outputs: (samples, synapses)."""
    ranks = torch.tensor(rank_in_neuron(forest))
    weight = torch.ones(forest.edges, dtype=dtype)
    weight[forest.synapse_edges] = 2.0 ** ranks.to(dtype)
    y, _ = kernel_outputs(forest, weight, seed, samples, p, dtype)
    sums = (y.double() / factor(p)).round().long()
    return (sums[:, forest.neuron_of_synapse.astype(int)] >> ranks) & 1


def factors_in_backward(forest, seed, samples, p, dtype=torch.float64):
    """The factors that the backward kernels use, read off the gradient of the inputs: (samples, synapses)."""
    forest = own_inputs(forest)
    return kernel_outputs(forest, torch.ones(forest.edges, dtype=dtype), seed, samples, p, dtype)[1]


# ------------------------------------------------------------------------------------------- kernels and PyTorch agree


@pytest.mark.parametrize("samples", [1, 255, 257, 600])
@pytest.mark.parametrize("name", FORESTS)
def test_kernels_and_pytorch_make_the_very_same_mask(name, samples):
    forest, p, seed = FORESTS[name], 0.4, -987654321987654321
    expected = mask_of(forest, seed, samples, p)
    assert torch.equal(kept_in_forward(forest, seed, samples, p), (expected > 0).long())
    torch.testing.assert_close(factors_in_backward(forest, seed, samples, p), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", RATES)
def test_they_agree_for_any_seed_rate_and_number_type(seed, p):
    forest = FORESTS["odd and even nodes"]
    expected = mask_of(forest, seed, 300, p)
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(kept_in_forward(forest, seed, 300, p, dtype), (expected > 0).long())
        actual = factors_in_backward(forest, seed, 300, p, dtype).double()
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=0)


def test_the_mask_of_a_sample_does_not_depend_on_the_size_of_the_batch():
    forest = FORESTS["odd fan-ins, two levels"]
    assert torch.equal(mask_of(forest, 3, 600, 0.5)[:100], mask_of(forest, 3, 100, 0.5))


@pytest.mark.parametrize("name", ["unbalanced, shared", "ragged", "any order", "odd and even nodes"])
def test_the_gradients_use_the_mask_of_the_forward_pass(name):
    forest = FORESTS[name]
    plan, case, seed = make_plan(forest), random_case(forest, (3,)), torch.tensor([77])

    def run(x, weight, bias):
        return fused.dendritic(x, weight, bias, plan, torch.tanh, False, 0.5, seed)

    assert torch.autograd.gradcheck(run, [tensor.requires_grad_() for tensor in case[:3]])


# ---------------------------------------------------------------------------------------------- rates and independence

WIDE = Forest.grow(64, depth=1, neurons=64)  # 4096 synapses
SEED = 8031924517630571829  # nothing special
rates = pytest.mark.parametrize("p", RATES)
few_rates = pytest.mark.parametrize("p", [0.1, 0.5])  # for what takes long
SAMPLES = 256


def standardized(mask, p):
    """Mean 0 and variance 1 if each is true with probability p on its own."""
    return (mask.double() - p) / math.sqrt(p * (1 - p))


@functools.lru_cache(maxsize=3)
def silent(seed, p, samples=SAMPLES):
    """Which synapses of `WIDE` are silent, standardized."""
    return standardized(mask_of(WIDE, seed, samples, p) == 0, p)


def fair(p, samples=SAMPLES):
    """The same from torch's own generator."""
    return standardized(torch.rand(samples, WIDE.synapses, generator=torch.Generator().manual_seed(0)) < p, p)


def deviations(mean, draws):
    """How many standard deviations the mean of standardized independent draws lies from 0."""
    return abs(float(mean)) * math.sqrt(draws)


@rates
def test_synapses_are_silent_at_the_rate_and_scaled_up_otherwise(p):
    mask = mask_of(WIDE, SEED, SAMPLES, p)
    assert deviations(standardized(mask == 0, p).mean(), mask.numel()) < 5
    assert set(mask.unique().tolist()) == {0.0, factor(p)}


@rates
def test_neighbors_are_independent(p):
    mask = silent(SEED, p)
    neighbors = {
        "synapses of a pair": mask[:, 0::2] * mask[:, 1::2],
        "synapses of two pairs": mask[:, 1:-1:2] * mask[:, 2::2],
        "first synapses of pairs": mask[:, :-2] * mask[:, 2:],
        "neurons": mask[:, :-64] * mask[:, 64:],
        "samples": mask[:-1] * mask[1:],
        "a pair in the next sample": mask[:-1, 0::2] * mask[1:, 1::2],
    }
    actual = {name: deviations(product.mean(), product.numel()) for name, product in neighbors.items()}
    assert max(actual.values()) < 5, actual


def largest_correlation(mask):
    """Of any two columns."""
    columns = (mask - mask.mean(0)).float()
    columns /= columns.norm(dim=0)
    return (columns.T @ columns).fill_diagonal_(0).abs().max().item()


@few_rates
def test_no_two_synapses_and_no_two_samples_go_together(p):
    mask, random = silent(SEED, p), fair(p)
    assert largest_correlation(mask) < 1.4 * largest_correlation(random)
    assert largest_correlation(mask.T) < 1.4 * largest_correlation(random.T)


# --------------------------------------------------------------------------------------------------------------- seeds

PAIRS_OF_SEEDS = {
    "consecutive": (0, 1),
    "consecutive, far out": (2**62 + 6, 2**62 + 7),
    "one bit": (5, 5 + 2**20),
    "high word only, by one": (5, 5 + 2**32),
    "high word only, by one bit": (5, 5 + 2**51),
    "sign only": (5, 5 - 2**63),
    "all bits": (5, ~5),
}


@few_rates
@pytest.mark.parametrize("name", PAIRS_OF_SEEDS)
def test_two_seeds_give_independent_masks(name, p):
    one, other = (silent(seed, p) for seed in PAIRS_OF_SEEDS[name])
    products = {
        "same place": one * other,
        "next sample": one[:-1] * other[1:],
        "sample before": one[1:] * other[:-1],
        "samples swapped": one * other[torch.arange(SAMPLES) ^ 1],
        "next pair": one[:, :-2] * other[:, 2:],
        "pair before": one[:, 2:] * other[:, :-2],
        "pairs turned": one * other.reshape(SAMPLES, -1, 2).flip(2).reshape(SAMPLES, -1),
    }
    actual = {key: deviations(product.mean(), product.numel()) for key, product in products.items()}
    assert max(actual.values()) < 5, actual


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_with_dropout_draws_one_seed_and_a_call_without_none(backend):
    layer = dendritree.DendriticLayer(16, 2, branching=2, dropout=0.5, backend=backend)
    x = torch.randn(5, 16)

    def state_after(action):
        torch.manual_seed(0)
        action()
        return torch.get_rng_state()

    once, never = state_after(lambda: draw_seed(x.device)), state_after(lambda: None)
    assert not torch.equal(once, never)
    assert torch.equal(state_after(lambda: layer(x).sum().backward()), once)
    layer.eval()
    assert torch.equal(state_after(lambda: layer(x).sum().backward()), never)


@pytest.mark.parametrize("name", FORESTS)
def test_all_backends_drop_the_same_synapses_for_a_seed(name):
    forest = FORESTS[name]
    plan, case = make_plan(forest), random_case(forest, (300,))

    def output(backend):
        torch.manual_seed(0)
        return dendritic(*case[:3], plan, torch.tanh, dropout=0.5, backend=backend)

    for backend in ("auto", "fused", "eager"):
        torch.testing.assert_close(output(backend), output("reference"), rtol=1e-9, atol=1e-9)
