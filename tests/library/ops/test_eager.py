"""The eager backend: outputs and every gradient are those of the reference and of a plain loop over the edges."""

import pytest
import torch
from forests import (
    ACTIVATIONS,
    NAMED,
    assert_same,
    forests,
    leading_shapes,
    loop,
    random_case,
    random_scale,
    run,
    seeds,
    wired_forests,
)
from hypothesis import given
from hypothesis import strategies as st

from dendritree.ops import eager, reference
from dendritree.ops.eager import make_layout
from dendritree.tree import Forest

activations = st.sampled_from(sorted(ACTIVATIONS))


def eager_run(case, forest, *options):
    layout = make_layout(forest)
    return run(lambda *tensors: eager.dendritic(*tensors, layout, *options), case)


def loop_run(case, forest, *options):
    return run(lambda *tensors: loop(*tensors, forest, *options), case)


# --------------------------------------------------------------------------------------------- outputs and gradients


@given(forests(), leading_shapes, activations, st.booleans(), st.booleans(), seeds)
def test_outputs_and_gradients_are_those_of_the_loop(forest, leading, activation, root_activation, bias, seed):
    case, options = random_case(forest, leading, bias=bias, seed=seed), (ACTIVATIONS[activation], root_activation)
    actual = eager_run(case, forest, *options)
    assert actual["output"].shape == (*leading, forest.neurons)
    assert_same(actual, loop_run(case, forest, *options))


@given(wired_forests(), leading_shapes, activations, st.booleans(), st.booleans(), seeds)
def test_outputs_and_gradients_are_those_of_the_reference(forest, leading, activation, root_activation, bias, seed):
    case, options = random_case(forest, leading, bias=bias, seed=seed), (ACTIVATIONS[activation], root_activation)
    expected = run(lambda *tensors: reference.dendritic(*tensors, forest, *options), case)
    assert_same(eager_run(case, forest, *options), expected)


@given(forests(), st.sampled_from([(1,), (3,), (), (2, 2)]), activations, st.booleans(), st.booleans(), seeds)
def test_a_dropout_mask_scales_each_synapse_alone(forest, leading, activation, root_activation, bias, seed):
    case, scale = random_case(forest, leading, bias=bias, seed=seed), random_scale(forest, leading, seed=seed + 1)
    options = ACTIVATIONS[activation], root_activation, scale
    assert_same(eager_run(case, forest, *options), loop_run(case, forest, *options))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("root_activation", [True, False])
@pytest.mark.parametrize("name", NAMED)
def test_every_kind_of_forest(name, root_activation, bias, scaled):
    forest = NAMED[name]
    case, scale = random_case(forest, (5,), bias=bias), random_scale(forest, (5,)) if scaled else None
    options = ACTIVATIONS["leaky_relu"], root_activation, scale
    actual = eager_run(case, forest, *options)
    assert_same(actual, loop_run(case, forest, *options))
    assert_same(actual, run(lambda *tensors: reference.dendritic(*tensors, forest, *options), case))


def test_root_activation_false_leaves_all_roots_linear_and_only_them():
    # Depths 1, 3 and 2: at every level roots and inner dendrites stand side by side.
    forest = Forest.join([Forest.nested([2]), Forest.nested([[[2]]]), Forest.nested([[2]])])
    x, weight = -torch.ones(6), torch.ones(forest.edges)
    actual = eager.dendritic(x, weight, None, make_layout(forest), ACTIVATIONS["leaky_relu"], False)
    torch.testing.assert_close(actual, torch.tensor([-2.0, -0.02, -0.2]))
    actual = eager.dendritic(x, weight, None, make_layout(forest), ACTIVATIONS["leaky_relu"], True)
    torch.testing.assert_close(actual, torch.tensor([-0.2, -0.002, -0.02]))


def test_the_order_of_the_outputs_is_that_of_the_roots():
    forest = Forest(2, [0, 1], [0, 1, 2], [1, 0])  # neuron 0 is the node that reads input 1
    actual = eager.dendritic(torch.tensor([3.0, 5.0]), torch.ones(2), None, make_layout(forest), lambda z: z)
    assert actual.tolist() == [5.0, 3.0]


@pytest.mark.parametrize("name", NAMED)
def test_gradcheck(name):
    forest = NAMED[name]
    layout, scale = make_layout(forest), random_scale(forest, (2,))
    tensors = [t.requires_grad_() for t in random_case(forest, (2,))[:3]]
    assert torch.autograd.gradcheck(lambda *t: eager.dendritic(*t, layout, torch.tanh), tensors)
    assert torch.autograd.gradcheck(lambda *t: eager.dendritic(*t, layout, torch.tanh, False, scale), tensors)


@pytest.mark.parametrize("name", ["balanced, shared", "unequal, shared"])
def test_gradgradcheck(name):
    forest = NAMED[name]
    layout, tensors = make_layout(forest), [t.requires_grad_() for t in random_case(forest, (2,))[:3]]
    assert torch.autograd.gradgradcheck(lambda *t: eager.dendritic(*t, layout, torch.tanh), tensors)


# ----------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("leading", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("name", ["balanced", "ragged, shared", "unequal"])
def test_an_empty_batch_has_empty_outputs_and_zero_gradients(name, leading, scaled):
    forest = NAMED[name]
    actual = eager_run(
        random_case(forest, leading), forest, torch.tanh, True, random_scale(forest, leading) if scaled else None
    )
    assert actual["output"].shape == (*leading, forest.neurons)
    assert actual["gradient of x"].shape == (*leading, forest.in_features)
    assert actual["gradient of weight"].tolist() == [0.0] * forest.edges
    assert actual["gradient of bias"].tolist() == [0.0] * forest.nodes


@pytest.mark.parametrize("leading", [(), (1,), (6,), (2, 3), (1, 2, 1, 3), (2, 1, 3, 1, 1)])
@pytest.mark.parametrize("name", ["balanced, shared", "unequal"])
def test_leading_dimensions_are_samples(name, leading):
    forest = NAMED[name]
    case, scale = random_case(forest, leading), random_scale(forest, leading)
    actual = eager.dendritic(*case[:3], make_layout(forest), torch.tanh, True, scale)
    assert actual.shape == (*leading, forest.neurons)
    samples = [
        loop(x, case.weight, case.bias, forest, torch.tanh, True, s)
        for x, s in zip(case.x.reshape(-1, forest.in_features), scale.reshape(-1, forest.synapses), strict=True)
    ]
    torch.testing.assert_close(actual.reshape(-1, forest.neurons), torch.stack(samples))


def transposed(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def strided(x):
    return torch.stack([x, torch.full_like(x, torch.nan)], dim=-1).flatten(-2)[..., ::2]


def permuted(x):
    return x.permute(1, 0, 2).contiguous().permute(1, 0, 2)


def expanded(x):
    return x[:1, :1].expand_as(x)


@pytest.mark.parametrize("arrange", [transposed, strided, permuted, expanded])
@pytest.mark.parametrize("name", ["balanced", "balanced, shared", "ragged, shared", "unequal"])
def test_inputs_need_not_be_contiguous(name, arrange):
    forest = NAMED[name]
    case = random_case(forest, (3, 2))
    x = arrange(case.x)
    assert not x.is_contiguous()
    layout = make_layout(forest)
    actual = run(lambda x, *rest: eager.dendritic(arrange(x), *rest, layout, torch.tanh), case)
    expected = run(lambda x, *rest: loop(arrange(x), *rest, forest, torch.tanh), case)
    assert_same(actual, expected)
