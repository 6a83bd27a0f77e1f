"""The fused backend computes what the plain loop does: forests, activations, types, batches, layouts, NaN."""

from functools import partial

import pytest
import torch
from forests import NAMED, Case, assert_same, forests, loop, random_case, run, seeds, share
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

ACTIVATIONS = {
    "leaky 0.1": nn.LeakyReLU(0.1),
    "leaky 0.3": nn.LeakyReLU(0.3),
    "leaky 1.5": nn.LeakyReLU(1.5),
    "relu": nn.ReLU(),
    "torch.relu": torch.relu,
    "tanh": nn.Tanh(),
    "torch.tanh": torch.tanh,
    "sigmoid": nn.Sigmoid(),
    "torch.sigmoid": torch.sigmoid,
    "gelu": nn.GELU(),
    "silu": nn.SiLU(),
    "none": nn.Identity(),
}
CLOSE = {torch.float64: 1e-9, torch.float32: 2e-4}
SHARED = {
    "two levels": share(Forest.grow(8, depth=2, neurons=3)),
    "three levels": share(Forest.grow([8, 3, 2], neurons=4)),
    "wider": share(Forest.grow([16, 4], neurons=5)),
    "odd": share(Forest.grow([9, 5], neurons=2)),
    "many neurons": share(Forest.grow([8, 2], neurons=19)),
}
"""Forests whose neurons read the same inputs."""


def fused(forest, activation, **options):
    plan = make_plan(forest)
    return lambda *tensors: dendritic(*tensors, plan, activation, backend="fused", **options)


def check(forest, case, activation, root_activation=True):
    """Fused outputs and gradients in the type of the case against the loop in float64."""
    close = CLOSE[case.x.dtype]
    actual = run(fused(forest, activation, root_activation=root_activation), case)
    assert {tensor.dtype for tensor in actual.values()} == {case.x.dtype}
    expected = run(lambda *t: loop(*t, forest, activation, root_activation), case.to(torch.float64))
    assert_same(actual, expected, rtol=close, atol=close)


# ------------------------------------------------------------------------------------------------- numbers, any forest


@given(
    forest=forests(),
    samples=st.sampled_from([0, 1, 2, 7, 33]),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    root_activation=st.booleans(),
    bias=st.booleans(),
    seed=seeds,
)
def test_outputs_and_gradients_are_those_of_the_loop(forest, samples, activation, dtype, root_activation, bias, seed):
    case = random_case(forest, (samples,), dtype, bias, seed)
    check(forest, case, ACTIVATIONS[activation], root_activation)


@given(forest=forests(), activation=st.sampled_from(sorted(ACTIVATIONS)), dropout=st.sampled_from([0.0, 0.4]))
def test_it_agrees_with_the_reference_for_the_same_seed(forest, activation, dropout):
    case, plan, act = random_case(forest, (5,)), make_plan(forest), ACTIVATIONS[activation]

    def op(backend):
        torch.manual_seed(1)
        return run(lambda *t: dendritic(*t, plan, act, dropout=dropout, backend=backend), case)

    assert_same(op("fused"), op("reference"))


@pytest.mark.parametrize("fan_in", range(1, 14))
@pytest.mark.parametrize("neurons", [1, 3])
def test_every_number_of_children(fan_in, neurons):
    for forest in (
        Forest.join([Forest.nested([fan_in])] * neurons),
        Forest.join([Forest.nested([[1]] * fan_in)] * neurons),
        Forest.join([Forest.nested([fan_in, [2], fan_in])] * neurons),
    ):
        check(forest, random_case(forest, (3,)), torch.tanh)


@pytest.mark.parametrize("neurons", [1, 2, 7, 8, 9, 15, 16, 17, 65, 130, 1030])
def test_every_number_of_equal_neurons(neurons):
    """Around the number of chunks."""
    forest = Forest.grow(2, depth=2, neurons=neurons)
    check(forest, random_case(forest, (2,)), torch.tanh, root_activation=False)


# ------------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("samples", [0, 1, 15, 16, 17, 63, 65, 127, 128, 129, 257, 600])
@pytest.mark.parametrize("name", ["balanced", "balanced, own inputs", "unbalanced, shared", "unequal"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_batches_around_the_edge_of_a_tile(samples, name, dropout):
    forest = NAMED[name]
    plan, case = make_plan(forest), random_case(forest, (samples,))

    def op(backend):
        torch.manual_seed(0)
        return run(lambda *t: dendritic(*t, plan, nn.LeakyReLU(0.1), dropout=dropout, backend=backend), case)

    assert_same(op("fused"), op("reference"))


@pytest.mark.parametrize("samples", [511, 512, 767, 768, 2048, 2100, 5000])
@pytest.mark.parametrize("bias", [True, False])
def test_one_neuron_and_a_large_batch(samples, bias):
    """The samples are cut into parts, each with its own sums of gradients."""
    for forest in (Forest.grow(2, depth=3), Forest.nested([3, [2], [2, [4]]])):
        check(forest, random_case(forest, (samples,), bias=bias), torch.sigmoid)


# ------------------------------------------------------------------------------------------------------- shared inputs


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("activation", ["leaky 0.3", "relu", "tanh", "sigmoid", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shared_inputs_give_the_numbers_of_the_loop(name, activation, dtype):
    forest = SHARED[name]
    for samples in (1, 6, 257):
        case = random_case(forest, (samples,), dtype, bias=samples != 1)
        check(forest, case, ACTIVATIONS[activation], root_activation=samples != 6)


@pytest.mark.parametrize(
    "forest",
    [
        Forest.grow(8, depth=2, neurons=3),  # own inputs
        Forest.grow(8, depth=2),  # one neuron
        share(Forest.grow(64, depth=1, neurons=3)),  # no level above
        share(Forest.grow(7, depth=2, neurons=3)),  # narrow
        share(Forest.grow(9, fan_in=80, neurons=3, ragged=True)),  # unequal leaf dendrites
        SHARED["two levels"].wired([*range(64), *range(64), *range(63, -1, -1)], 64),  # one in another order
        SHARED["two levels"].wired([*range(64)] * 3, 65),  # an input that nobody reads
        share(Forest.join([Forest.nested([[8], [8]]), Forest.nested([[8], [[8]]])])),  # unequal depth
        share(Forest.join([Forest.nested([[8], [8], 1])] * 2)),  # synapses above the leaves
    ],
)
def test_inputs_shared_in_other_ways_give_the_numbers_of_the_loop(forest):
    check(forest, random_case(forest, (5,)), torch.tanh)


LAYOUTS = {
    "samples-major": lambda x: x,
    "features-major": lambda x: x.t().contiguous().t(),
    "every second sample": lambda x: torch.stack([x, x + 1], 1).flatten(0, 1)[::2],
    "every second feature": lambda x: torch.stack([x, x + 1], -1).flatten(-2)[:, ::2],
    "a slice of features": lambda x: torch.cat([x, x], 1)[:, : x.shape[1]],
    "3-D": lambda x: x.reshape(2, 3, -1),
    "3-D, samples swapped": lambda x: x.reshape(2, 3, -1).transpose(0, 1),
    "3-D, features first": lambda x: x.t().reshape(-1, 2, 3).permute(1, 2, 0),
    "1-D": lambda x: x[0],
    "one sample for all": lambda x: x[:1].expand(6, -1),
    "one number for all": lambda x: x[:1, :1].expand(6, x.shape[1]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["shared by three", "balanced, own inputs", "unequal, shared"])
def test_any_memory_layout_of_x(layout, name):
    forest = {"shared by three": SHARED["two levels"], **NAMED}[name]
    x, weight, bias, _ = random_case(forest, (6,))
    given_x, actual, expected = LAYOUTS[layout](x), {}, {}
    cotangent = torch.randn(*given_x.shape[:-1], forest.neurons, dtype=torch.float64)
    for result, function in (
        (actual, fused(forest, torch.tanh)),
        (expected, lambda *t: loop(*t, forest, torch.tanh)),
    ):
        base = x.clone().requires_grad_()
        w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        result["output"] = function(LAYOUTS[layout](base), w, b)
        result["output"].backward(cotangent)
        result |= {"x": base.grad, "weight": w.grad, "bias": b.grad}
    assert_same(actual, expected)


@pytest.mark.parametrize("name", ["shared by three", "unequal"])
@pytest.mark.parametrize("samples", [4, 300])
def test_any_memory_layout_of_weight_bias_and_cotangent(name, samples):
    forest = {"shared by three": SHARED["two levels"], **NAMED}[name]
    case = random_case(forest, (samples,))
    spread = [torch.stack([t, t + 1], -1)[..., 0] for t in case]
    assert not any(t.is_contiguous() for t in spread)
    actual = [t.detach().requires_grad_() for t in spread[:3]]
    expected = [t.clone().requires_grad_() for t in case[:3]]
    output, exact = fused(forest, torch.tanh)(*actual), loop(*expected, forest, torch.tanh)
    output.backward(spread[3])
    exact.backward(case.cotangent)
    torch.testing.assert_close(output, exact)
    for tensor, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(tensor.grad, other.grad)


# ----------------------------------------------------------------------------------------------------- NaN and infinity


def spoil(case, where, seed):
    """NaN and both infinities, each in one place."""
    generator = torch.Generator().manual_seed(seed)
    values = [float("inf"), -float("inf"), float("nan")]
    tensors = {name: None if t is None else t.clone() for name, t in case._asdict().items()}
    for value in values:
        flat = tensors[where].view(-1)
        flat[torch.randint(flat.numel(), (1,), generator=generator)] = value
    return Case(**tensors)


@pytest.mark.parametrize("where", ["x", "weight", "bias", "cotangent"])
@pytest.mark.parametrize("activation", ["leaky 0.3", "relu", "tanh", "sigmoid", "none"])
@pytest.mark.parametrize(
    "name", ["a perceptron", "balanced, shared", "unbalanced", "unequal", "any order", "shared by four"]
)
def test_nan_and_infinity_go_where_the_loop_takes_them(name, activation, where):
    forest = {"shared by four": SHARED["three levels"], **NAMED}[name]
    act = ACTIVATIONS[activation]
    for seed in range(4):
        case = spoil(random_case(forest, (9,), seed=seed), where, seed)
        actual = run(fused(forest, act), case)
        expected = run(lambda *t: loop(*t, forest, act), case)
        for key in expected:
            torch.testing.assert_close(
                actual[key],
                expected[key],
                equal_nan=True,
                msg=lambda text, key=key, seed=seed: f"{key}, seed {seed}: {text}",
            )


@pytest.mark.parametrize("activation", [torch.tanh, torch.sigmoid, nn.ReLU()], ids=["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e20), (torch.float64, 1e155)])
def test_weights_whose_product_overflows_give_the_inputs_no_nan(activation, dropout, dtype, size):
    """A path that passes nothing on has a gradient of 0, though the product of its weights is infinite."""
    forest = Forest.grow(3, depth=2, neurons=8)
    case = random_case(forest, (40,), dtype, bias=False)
    case.x.div_(size)
    case.weight.mul_(size)
    if isinstance(activation, nn.ReLU):
        case.weight[forest.synapse_edges] = -case.weight[forest.synapse_edges].abs()
        case.x.abs_()
    else:
        case.x.mul_(1e3)
    actual = {}
    for backend in ("fused", "eager"):
        torch.manual_seed(0)
        op = partial(dendritic, plan=make_plan(forest), activation=activation, dropout=dropout, backend=backend)
        actual[backend] = run(op, case)
    assert actual["eager"]["gradient of x"].isfinite().all()
    for name, expected in actual["eager"].items():
        torch.testing.assert_close(actual["fused"][name], expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
